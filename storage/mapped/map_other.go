//go:build !unix

package mapped

import (
	"fmt"
	"io"
)

// Open reads a whole file into memory, since files are not mapped on this system.
func Open(path string) (*File, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	m := &File{file: file, Info: info, Data: make([]byte, info.Size())}
	if _, err := io.ReadFull(file, m.Data); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read %d bytes: %w", len(m.Data), err)
	}
	return m, nil
}

// Close unmaps the file. Nothing may touch Data any more.
func (m *File) Close() error {
	m.Data = nil
	return m.file.Close()
}
