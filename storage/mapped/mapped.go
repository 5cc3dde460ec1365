// Package mapped maps files that are read while others may write to them.
//
// A file that is cut under a mapping makes the kernel signal whoever touches the pages that are gone. Guard turns that
// into an error. What the bytes mean is for the packages of formats to know.
package mapped

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// ErrShrunk is the error of a file that lost bytes while it was mapped.
var ErrShrunk = errors.New("the file was truncated or cannot be read any more: restore it and start again")

// ErrChanged is the error of a file whose bytes may be others than those that were mapped.
var ErrChanged = errors.New("the file was written to after it was opened: restore it and start again")

// File is a file in memory, read only. Its pages are the file's own where the platform can do that.
type File struct {
	Info fs.FileInfo // as it was opened
	Data []byte      // nil after Close

	file *os.File // kept open: its size and time are compared after each use
}

// Guard runs use, which may read m.Data. The kernel signals a read of a page that the file no longer has; Guard
// turns that signal into ErrShrunk. A page that the file has in part reads as zeros after its end, without any
// signal, so the size is compared as well.
func (m *File) Guard(use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover(); {
		case r == nil:
		case m.owns(r):
			err = ErrShrunk
		default:
			panic(r)
		}
	}()
	if err := use(); err != nil {
		return err
	}
	return m.Check()
}

// Check says whether the file is as it was opened.
func (m *File) Check() error {
	info, err := m.file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrShrunk, err)
	case info.Size() < int64(len(m.Data)):
		return ErrShrunk
	case !info.ModTime().Equal(m.Info.ModTime()):
		return ErrChanged
	}
	return nil
}

// ReadAt reads from the file, past the mapping: what it finds is what a reader of the file finds.
func (m *File) ReadAt(b []byte, at int64) (int, error) { return m.file.ReadAt(b, at) }

// owns says whether a recovered value is a memory fault inside the mapping; any other is a bug of ours.
func (m *File) owns(recovered any) bool {
	fault, ok := recovered.(interface{ Addr() uintptr })
	if !ok {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.Data)))
	return fault.Addr()-start < uintptr(len(m.Data))
}

// openRegular opens a file that can be mapped.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	file, info, err := safefile.Open(path)
	if err == nil && info.Size() != int64(int(info.Size())) {
		err = errors.Join(fmt.Errorf("has %d bytes, more than this machine can address", info.Size()), file.Close())
	}
	if err != nil {
		return nil, nil, err
	}
	return file, info, nil
}
