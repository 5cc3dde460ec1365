//go:build unix

package gguf

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// mapFile maps a whole file.
func mapFile(path string) (*mapping, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	m, size := &mapping{file: file, info: info}, info.Size()
	if size == 0 {
		return m, nil // an empty mapping is an error of mmap; parse says what is wrong
	}
	m.data, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot map %d bytes: %w", size, err)
	}
	return m, nil
}

func (m *mapping) close() error {
	var err error
	if m.data != nil {
		err = unix.Munmap(m.data)
	}
	m.data = nil
	return errors.Join(err, m.file.Close())
}
