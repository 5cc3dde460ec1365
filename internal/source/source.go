// Package source describes where the bytes of a model lie: in a file, or in memory.
//
// File formats return Sources; what reads weights (the ring of storage/uring) takes them. Neither needs to know the
// other. A Source is a description and owns nothing: no descriptor, no mapping.
package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Source is a run of bytes that does not change while a model is in use.
type Source struct {
	Name string // for messages
	Path string // of the file; empty if the bytes are in Data
	Size int64  // bytes, as found when the file was opened; a reader reports a file that has changed
	Data []byte // the bytes themselves where there is no file; read only

	Info fs.FileInfo // of the file when it was opened; nil if any of that size will do

	Copies []Source // of the same bytes elsewhere, without copies of their own: a reader takes whichever comes sooner
}

// Copy returns the source itself for i = 0, and its copies for 1 and more.
func (s *Source) Copy(i int) Source {
	if i == 0 {
		return *s
	}
	return s.Copies[i-1]
}

// ErrChanged says that a file has changed since it was opened.
var ErrChanged = errors.New("restore it and start again")

// Check fails with ErrChanged if a file, as it is now, is not the one that was opened. A write shows in the file's
// time.
func (s *Source) Check(now fs.FileInfo) error {
	switch {
	case now.Size() != s.Size:
		return fmt.Errorf("the file has %d bytes, and had %d when it was opened: %w", now.Size(), s.Size, ErrChanged)
	case s.Info == nil:
		return nil
	case !os.SameFile(now, s.Info):
		return fmt.Errorf("another file has taken the place of the one that was opened: %w", ErrChanged)
	case !now.ModTime().Equal(s.Info.ModTime()):
		return fmt.Errorf("the file was written to after it was opened: %w", ErrChanged)
	}
	return nil
}
