//go:build !unix

package gguf

import (
	"fmt"
	"io"
)

// mapFile reads a whole file into memory: this platform has no mapping here yet.
func mapFile(path string) (*mapping, error) {
	file, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	m := &mapping{file: file, data: make([]byte, size)}
	if _, err := io.ReadFull(file, m.data); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read %d bytes: %w", size, err)
	}
	return m, nil
}

func (m *mapping) close() error {
	m.data = nil
	return m.file.Close()
}
