//go:build unix

package uring

import (
	"os"

	"golang.org/x/sys/unix"
)

// readAt is one read, which may be short. It is not (*os.File).ReadAt, which goes on after a short read at an offset
// that a direct read must not have.
func readAt(f *os.File, b []byte, at int64) (int, error) {
	for {
		n, err := unix.Pread(int(f.Fd()), b, at)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}
