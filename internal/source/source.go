// Package source describes where the bytes of a model lie: in a file, in memory, or on another machine.
//
// File formats return Sources; what reads weights (the ring of storage/uring) takes them. Neither needs to know the
// other. A Source is a description and owns nothing: no descriptor, no mapping.
package source

import (
	"errors"
	"fmt"
	"io"
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

	Remote Remote // reads the bytes while no file of this machine has them all; nil: the file at Path does

	Copies []Source // of the same bytes elsewhere, without copies of their own: a reader takes whichever comes sooner
}

// Remote is where the bytes are that this machine does not have, or not yet: the memory of another one. Reads wait for
// them, and fail when they are given up. It is used by several goroutines.
type Remote interface {
	io.ReaderAt
	// Here says that by now the file at the source's Path has all bytes: then it is read as others are.
	Here() bool
}

// Arriving is a Remote that brings the bytes into the file at the source's Path.
type Arriving interface {
	Remote
	// Await waits until the file has so many bytes from an offset on.
	Await(from, n int64) error
}

// Far says whether the bytes have to be asked of the source's Remote.
func (s *Source) Far() bool { return s.Remote != nil && !s.Remote.Here() }

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
