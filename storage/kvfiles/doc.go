// Package kvfiles keeps blocks of KV caches, and recurrent states, in files, one a block, so that they outlive the
// process. A Folder holds those of all models, and is bounded; a Shelf is the part of it whose blocks one model can
// use, computed and laid out as its own. A file is written beside its name and then renamed, so that whoever reads it
// finds a whole one; what is torn, foreign or of another version is told from its checksums and ignored. It does not
// decide which blocks are kept: that is stages/kv. The format is described in docs/kv-files.md.
package kvfiles
