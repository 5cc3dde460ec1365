// Package mem gives memory outside the Go heap: for weights, KV caches, activations and staging slabs.
//
// The garbage collector neither scans nor counts it, pages are taken from the system at first touch and zero
// until then, and large areas are backed by huge pages where the system has them. Whoever allocates frees.
package mem

import (
	"fmt"
	"sync/atomic"
)

// Align is what the address of an area is a multiple of, at least.
const Align = 4096

// Alloc maps n zero bytes. For n = 0 it gives an empty area that may be freed too.
func Alloc(n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if n < 0 || n != int64(int(n)) {
		return nil, fmt.Errorf("cannot map %d bytes: this machine addresses at most %d", n, int(^uint(0)>>1))
	}
	return alloc(int(n))
}

// populateBytes is how much memory is taken from the system at a time.
const populateBytes = 32 << 20

// Populate takes an area's pages from the system before anyone touches them, until stop says otherwise: a page at a
// time costs more, most of all if two threads meet at one. Others may use the area meanwhile. It is an advantage
// only: where the system cannot, it does nothing.
func Populate(area []byte, stop *atomic.Bool) {
	for len(area) > 0 && !stop.Load() {
		n := min(len(area), populateBytes)
		if populate(area[:n]) != nil {
			return
		}
		area = area[n:]
	}
}

// Free unmaps an area that Alloc gave, whole. Nobody may touch it afterwards.
func Free(area []byte) error {
	if cap(area) == 0 {
		return nil
	}
	return free(area)
}
