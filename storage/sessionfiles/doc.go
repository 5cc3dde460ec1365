// Package sessionfiles keeps saved sessions in files: the tokens of a text, and the blocks of KV caches and recurrent
// states from which a model goes on behind it. A File is read through checksums, and says of what model, client and
// arithmetic it is; a Folder holds the files of all clients, by digests of their keys and of the names that they chose,
// and is bounded. The format is described in docs/session-files.md.
package sessionfiles
