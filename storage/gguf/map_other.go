//go:build !unix

package gguf

import (
	"fmt"
	"io"
)

// mapFile reads a whole file into memory: this platform has no mapping here yet.
func mapFile(path string) (*mapping, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	m := &mapping{file: file, info: info, data: make([]byte, info.Size())}
	if _, err := io.ReadFull(file, m.data); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read %d bytes: %w", len(m.data), err)
	}
	return m, nil
}

func (m *mapping) close() error {
	m.data = nil
	return m.file.Close()
}
