package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
)

// file is the name of a module's code, packed: it is a third of its size in the repository and in the program.
func (u *unit) file() string { return u.name + ".spv.gz" }

// pack writes a module's code, unless it is what the file already holds: other releases of Go pack it otherwise.
func pack(file string, code []byte) error {
	if old, err := unpack(file); err == nil && bytes.Equal(old, code) {
		return nil
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(code); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}

// unpack reads it.
func unpack(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
