package pin

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Alloc returns n zero bytes, aligned to Align or better. Pages are given when first touched, huge ones if the
// system has them, so the thread that writes first decides where they lie. Free gives them back.
func Alloc(n int) ([]byte, error) {
	if n < 1 || n > math.MaxInt-hugePage {
		return nil, fmt.Errorf("cannot allocate %d bytes: want 1 to %d", n, math.MaxInt-hugePage)
	}
	size := (n + Align - 1) &^ (Align - 1)
	if size < hugePage {
		p, err := reserve(size)
		if err != nil {
			return nil, err
		}
		return unsafe.Slice((*byte)(p), size)[:n:n], nil
	}
	// Reserve a huge page more than needed and give back what lies before and after the aligned part.
	p, err := reserve(size + hugePage)
	if err != nil {
		return nil, err
	}
	skip := -uintptr(p) & (hugePage - 1)
	start := unsafe.Add(p, skip)
	err = errors.Join(release(p, skip), release(unsafe.Add(start, size), hugePage-skip))
	if err != nil {
		return nil, err
	}
	b := unsafe.Slice((*byte)(start), size)
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // advice: without it the pages are small, and all else is the same
	return b[:n:n], nil
}

func reserve(n int) (unsafe.Pointer, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("cannot allocate %d bytes: %w: close other programs or choose a smaller budget", n, err)
	}
	return p, nil
}

func release(p unsafe.Pointer, n uintptr) error {
	if n == 0 {
		return nil
	}
	return unix.MunmapPtr(p, n)
}

// Free gives back a block of Alloc, which must be the very slice that Alloc returned. Free(nil) does nothing.
func Free(b []byte) error {
	if b == nil {
		return nil
	}
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)+Align-1)&^(Align-1))
}

func lock(b []byte) error {
	if err := unix.Mlock(b); err != nil {
		return fmt.Errorf("cannot lock %d bytes in memory: %w: raise the limit (ulimit -l)", len(b), err)
	}
	return nil
}
