//go:build unix

package system

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// MapMemory returns n > 0 zero bytes outside the Go heap, at the start of a page. Pages are taken at their first use.
func MapMemory(n int) ([]byte, error) {
	area, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d MiB of memory: %w", n>>20, err)
	}
	advise(area)
	return area, nil
}

// UnmapMemory gives back an area as MapMemory returned it.
func UnmapMemory(area []byte) error { return unix.Munmap(area) }

// ForbidMemory makes any access to pages of an area a fault.
func ForbidMemory(pages []byte) error { return unix.Mprotect(pages, unix.PROT_NONE) }

// LockMemory keeps an area in memory: it is not swapped out.
func LockMemory(area []byte) error {
	if err := unix.Mlock(area); err != nil {
		return fmt.Errorf("cannot lock %d bytes in memory: %w: raise the limit (ulimit -l)", len(area), err)
	}
	return nil
}
