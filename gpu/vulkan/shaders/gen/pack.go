package main

import (
	"bytes"
	"os"

	"github.com/klauspost/compress/zstd"
)

// file is the name of a module's code, packed: it is a quarter of its size in the repository and in the program.
func (u *unit) file() string { return u.name + ".spv.zst" }

// pack writes a module's code, unless it is what the file already holds: other releases of the library pack it otherwise.
func pack(file string, code []byte) error {
	if old, err := unpack(file); err == nil && bytes.Equal(old, code) {
		return nil
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	return os.WriteFile(file, e.EncodeAll(code, nil), 0o644)
}

// unpack reads it.
func unpack(file string) ([]byte, error) {
	packed, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(packed, nil)
}
