// Package answerfiles keeps accepted requests and what was drawn for them in files, one a request, so that an answer
// can be gone on with after the process has ended. A Folder holds those of all clients; it is bounded in bytes and in
// age. Files only grow: the tail that a killed process left is cut at the last whole record. It does not decide when
// something is written: that is actors. The format is described in docs/answer-files.md.
package answerfiles
