package uring

import (
	"os"

	"golang.org/x/sys/unix"
)

// drop takes a file out of the page cache.
func drop(f *os.File) {
	_ = f.Sync()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
