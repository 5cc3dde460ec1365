// Package mem gives memory outside the Go heap: for weights, KV caches, activations and staging slabs.
//
// The garbage collector neither scans nor counts it, pages are taken from the system at first touch and zero
// until then, and large areas are backed by huge pages where the system has them. Whoever allocates frees.
package mem

import "fmt"

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

// Free unmaps an area that Alloc gave, whole. Nobody may touch it afterwards.
func Free(area []byte) error {
	if cap(area) == 0 {
		return nil
	}
	return free(area)
}
