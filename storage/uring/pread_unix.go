//go:build unix

package uring

import (
	"os"

	"golang.org/x/sys/unix"
)

// readAt does one read, which may be short. (*os.File).ReadAt would continue after a short read at an offset that a
// direct read must not have.
func readAt(f *os.File, b []byte, at int64) (int, error) {
	for {
		n, err := unix.Pread(int(f.Fd()), b, at)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}
