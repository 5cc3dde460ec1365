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
		err = nil // a short read says it
	}
	return n, err
}
