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

// exactly lets reads of a file bring no more into the page cache than they ask for.
func exactly(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) }
