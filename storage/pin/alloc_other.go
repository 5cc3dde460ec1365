//go:build !linux

package pin

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Alloc returns n zero bytes, aligned to Align. Here they come from the Go heap; Free lets the collector have them.
func Alloc(n int) ([]byte, error) {
	if n < 1 || n > math.MaxInt-Align {
		return nil, fmt.Errorf("cannot allocate %d bytes: want 1 to %d", n, math.MaxInt-Align)
	}
	b := make([]byte, n+Align)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (Align - 1))
	return b[skip : skip+n : skip+n], nil
}

// Free ends the use of a block of Alloc.
func Free([]byte) error { return nil }

func lock([]byte) error { return errors.New("memory cannot be locked on this system yet") }
