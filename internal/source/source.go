// Package source says where the bytes of a model lie: in a file, or in memory.
//
// File formats hand out Sources; what reads weights (the ring of storage/uring) takes them. Neither needs to
// know the other. A Source is a description and owns nothing: no descriptor, no mapping.
package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Source is a run of bytes that stays the same while a model is in use.
type Source struct {
	Name string // for messages
	Path string // of the file; empty if the bytes are in Data
	Size int64  // bytes, as found when the file was opened; a reader reports a file that has changed
	Data []byte // the bytes themselves where there is no file; read only

	Info fs.FileInfo // of the file when it was opened; nil if any of that size will do

	Copies []Source // of the same bytes elsewhere, without copies of their own: a reader takes whichever comes sooner
}

// Copy is the source itself for 0, then its copies.
func (s *Source) Copy(i int) Source {
	if i == 0 {
		return *s
	}
	return s.Copies[i-1]
}

// ErrChanged says that a file is not what it was when it was opened.
var ErrChanged = errors.New("restore it and start again")

// Check says whether a file, as it is now, is the one that was opened. What was written to it shows in its time.
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
