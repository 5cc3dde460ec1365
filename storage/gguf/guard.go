package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// errShrunk is the error of a file that lost bytes while it was mapped.
var errShrunk = errors.New("the file was truncated or cannot be read any more: restore it and start again")

// errChanged is the error of a file whose bytes may be others than those that were mapped.
var errChanged = errors.New("the file was written to after it was opened: restore it and start again")

// mapping is a file in memory, read only. Its pages are the file's own where the platform can do that.
type mapping struct {
	file *os.File    // kept open: its size and time are compared after each use
	info fs.FileInfo // as it was opened
	data []byte
}

// guard runs use, which may read m.data. The kernel signals a read of a page that the file no longer has; guard
// turns that signal into errShrunk. A page that the file has in part reads as zeros after its end, without any
// signal, so the size is compared as well.
func (m *mapping) guard(use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover(); {
		case r == nil:
		case m.owns(r):
			err = errShrunk
		default:
			panic(r)
		}
	}()
	if err := use(); err != nil {
		return err
	}
	return m.check()
}

// check says whether the file is as it was opened.
func (m *mapping) check() error {
	info, err := m.file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errShrunk, err)
	case info.Size() < int64(len(m.data)):
		return errShrunk
	case !info.ModTime().Equal(m.info.ModTime()):
		return errChanged
	}
	return nil
}

// owns says whether a recovered value is a memory fault inside the mapping; any other is a bug of ours.
func (m *mapping) owns(recovered any) bool {
	fault, ok := recovered.(interface{ Addr() uintptr })
	if !ok {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	return fault.Addr()-start < uintptr(len(m.data))
}

// openRegular opens a file that can be mapped.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	file, info, err := safefile.Open(path)
	if errors.Is(err, safefile.ErrKind) {
		err = fmt.Errorf("%w: give the path of a .gguf file", err)
	}
	if err == nil && info.Size() != int64(int(info.Size())) {
		err = errors.Join(fmt.Errorf("has %d bytes, more than this machine can address", info.Size()), file.Close())
	}
	if err != nil {
		return nil, nil, err
	}
	return file, info, nil
}
