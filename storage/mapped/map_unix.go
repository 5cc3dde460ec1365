//go:build unix

package mapped

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Open maps a whole file, read only. It fails for anything but a regular file.
func Open(path string) (*File, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	m, size := &File{file: file, Info: info}, info.Size()
	if size == 0 {
		return m, nil // mmap refuses an empty range; the format's parser reports the empty file better
	}
	m.Data, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot map %d bytes: %w", size, err)
	}
	return m, nil
}

// Close unmaps the file. Nothing may touch Data any more.
func (m *File) Close() error {
	var err error
	if m.Data != nil {
		err = unix.Munmap(m.Data)
	}
	m.Data = nil
	return errors.Join(err, m.file.Close())
}
