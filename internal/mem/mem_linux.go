package mem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page on amd64 and arm64, in bytes: smaller areas get none.
const hugePage = 2 << 20

func alloc(n int) ([]byte, error) {
	area, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d MiB of memory: %w", n>>20, err)
	}
	if n >= hugePage {
		// Advice only: a kernel without huge pages refuses it, and small pages serve as well.
		_ = unix.Madvise(area, unix.MADV_HUGEPAGE)
	}
	return area, nil
}

// populate faults pages in for writing without changing their content (since Linux 5.14).
func populate(area []byte) error { return unix.Madvise(area, unix.MADV_POPULATE_WRITE) }

func free(area []byte) error { return unix.Munmap(area) }
