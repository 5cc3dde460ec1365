// Package pin allocates the slabs through which data travels from disk: outside the Go heap, locked in memory where
// the system allows it.
//
// Their pages stay in place while the kernel or a device writes to them. The pool decides who may use a slab when;
// the arena's maker closes it, and using a slab after that is a memory fault.
package pin

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/system"
)

// Align is the least alignment of every slab, in bytes: a page, which is more than O_DIRECT and vector loads need.
const Align = mem.Align

// Arena is a fixed number of slabs of one size in one block of memory.
type Arena struct {
	// Unlocked is the reason why the slabs are not locked in memory; nil if they are. Unlocked slabs work too, but
	// the system may swap them out, and a device cannot use them for transfers without a copy.
	Unlocked error

	block []byte
	size  int // of a slab, rounded up to Align
	slabs int
}

// New makes an arena of slabs of at least size bytes each. It fails if there is no memory.
func New(slabs, size int) (*Arena, error) {
	if slabs < 1 || size < 1 || size > math.MaxInt-Align {
		return nil, fmt.Errorf("arena of %d slabs of %d bytes: want at least 1 of each", slabs, size)
	}
	size = (size + Align - 1) &^ (Align - 1)
	if slabs > math.MaxInt/size {
		return nil, fmt.Errorf("arena of %d slabs of %d bytes: more than this machine can address", slabs, size)
	}
	block, err := mem.Alloc(int64(slabs) * int64(size))
	if err != nil {
		return nil, err
	}
	return &Arena{block: block, size: size, slabs: slabs, Unlocked: system.LockMemory(block)}, nil
}

// Memory returns all slabs in one piece, to register them with a device or the kernel.
func (a *Arena) Memory() []byte { return a.block }

// Slabs returns the number of slabs.
func (a *Arena) Slabs() int { return a.slabs }

// Slab returns slab i. Its bytes are zero at first, later those of its last use.
func (a *Arena) Slab(i int) []byte {
	return a.block[i*a.size : (i+1)*a.size : (i+1)*a.size]
}

// Close frees the memory. No slab may be in use.
func (a *Arena) Close() error {
	block := a.block
	a.block, a.slabs = nil, 0
	return mem.Free(block)
}
