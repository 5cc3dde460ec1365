// Package mem allocates memory outside the Go heap: for weights, KV caches, activations and staging slabs.
//
// The garbage collector neither scans nor counts it, pages are taken from the system at first touch and zero until
// then, and large areas are backed by huge pages where the system has them. The caller of Alloc must call Free.
package mem

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/system"
)

// Align is the least alignment of an area's address, in bytes.
const Align = 4096

// Alloc maps n zero bytes. For n = 0 it returns an empty area, which may be freed too. It fails if the system has no
// memory.
func Alloc(n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if n < 0 || n != int64(int(n)) {
		return nil, fmt.Errorf("cannot map %d bytes: this machine addresses at most %d", n, int(^uint(0)>>1))
	}
	return system.MapMemory(int(n))
}

// populateBytes is the step in which Populate takes memory from the system, in bytes.
const populateBytes = 32 << 20

// Populate takes an area's pages from the system before their first use, until stop is set: page faults cost more,
// most of all if two threads fault at one page. Others may use the area meanwhile. On systems without support it does
// nothing.
func Populate(area []byte, stop *atomic.Bool) {
	for len(area) > 0 && !stop.Load() {
		n := min(len(area), populateBytes)
		if system.PopulateMemory(area[:n]) != nil {
			return
		}
		area = area[n:]
	}
}

// Free unmaps an area as Alloc returned it. Nothing may touch the area afterwards.
func Free(area []byte) error {
	if cap(area) == 0 {
		return nil
	}
	return system.UnmapMemory(area)
}

// Numbers views memory of an area as numbers of another size. What does not fill one is left out.
func Numbers[T uint16 | float32](area []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(area))), len(area)/int(unsafe.Sizeof(one)))
}

// FreeAfter unmaps an area when nothing refers to its owner any more.
func FreeAfter[T any](owner *T, area []byte) {
	runtime.AddCleanup(owner, func(area []byte) { _ = Free(area) }, area) // nobody could do anything about an error
}
