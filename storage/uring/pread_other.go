//go:build !unix

package uring

import (
	"errors"
	"io"
	"os"
)

func readAt(f *os.File, b []byte, at int64) (int, error) {
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil // the caller sees it by the short read
	}
	return n, err
}
