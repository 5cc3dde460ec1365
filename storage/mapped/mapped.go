// Package mapped maps files that other processes may write to meanwhile.
//
// If a file is truncated under a mapping, the kernel signals any access to the missing pages. Guard turns that signal
// into an error. The meaning of the bytes is left to the packages of formats.
package mapped

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/system"
)

// ErrShrunk is the error of a file that lost bytes while it was mapped.
var ErrShrunk = errors.New("the file was truncated or cannot be read any more: restore it and start again")

// ErrChanged is the error of a file that was written to after it was mapped.
var ErrChanged = errors.New("the file was written to after it was opened: restore it and start again")

// File is a file in memory, read only.
type File struct {
	Info fs.FileInfo // as it was opened
	Data []byte      // nil after Close
	// Filled says that bytes come into the file while it is mapped, from another machine: then its time says nothing.
	Filled bool

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

// Check fails with ErrShrunk or ErrChanged if the file is not as it was when it was opened.
func (m *File) Check() error {
	info, err := m.file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrShrunk, err)
	case info.Size() < int64(len(m.Data)):
		return ErrShrunk
	case !m.Filled && !info.ModTime().Equal(m.Info.ModTime()):
		return ErrChanged
	}
	return nil
}

// ReadAt reads from the file and not from the mapping, so it sees the file's present content.
func (m *File) ReadAt(b []byte, at int64) (int, error) { return m.file.ReadAt(b, at) }

// owns reports whether a recovered panic is a memory fault inside the mapping; any other is a bug of this program.
func (m *File) owns(recovered any) bool {
	fault, ok := recovered.(interface{ Addr() uintptr })
	if !ok {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.Data)))
	return fault.Addr()-start < uintptr(len(m.Data))
}

// Open maps a whole file, read only. It fails for anything but a regular file.
func Open(path string) (*File, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	m, size := &File{file: file, Info: info}, info.Size()
	if size == 0 {
		return m, nil // no system maps an empty range; the format's parser reports the empty file better
	}
	if m.Data, err = system.MapFile(file, int(size)); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot map %d bytes: %w", size, err)
	}
	return m, nil
}

// Close unmaps the file. Nothing may touch Data any more.
func (m *File) Close() error {
	var err error
	if m.Data != nil {
		err = system.UnmapFile(m.Data)
	}
	m.Data = nil
	return errors.Join(err, m.file.Close())
}

// openRegular opens a regular file; it fails for anything else.
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
