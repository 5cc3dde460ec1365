// Package source says where the bytes of a model lie: in a file, or in memory.
//
// File formats hand out Sources; what reads weights (the ring of storage/uring) takes them. Neither needs to
// know the other. A Source is a description and owns nothing: no descriptor, no mapping.
package source

// Source is a run of bytes that stays the same while a model is in use.
type Source struct {
	Name string // for messages
	Path string // of the file; empty if the bytes are in Data
	Size int64  // bytes, as found when the file was opened; a reader reports a file that has changed
	Data []byte // the bytes themselves where there is no file; read only
}
