package exec

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// memory is the buffers of a model, which are freed together, and the account of what they are for.
type memory struct {
	d       driver.Device // a counter if the model's memory is only counted
	mu      sync.Mutex    // guards all: staging buffers are taken when they are first needed
	all     []*driver.Buffer
	account backend.Memory
}

// take allocates a buffer, and zeroes it if it is mapped. what names its purpose in errors.
func (b *memory) take(m driver.Memory, size uint64, what string) (*driver.Buffer, error) {
	x, err := b.raw(m, size, what)
	if err == nil {
		clear(x.Bytes)
	}
	return x, err
}

// raw is take without zeroing, for what is written before it is read.
func (b *memory) raw(m driver.Memory, size uint64, what string) (*driver.Buffer, error) {
	x, err := allocate(b.d, m, size, what)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.all = append(b.all, x)
	b.mu.Unlock()
	return x, nil
}

// counter is a device that allocates nothing: its buffers have addresses, but no memory on the device.
type counter struct {
	driver.Device
	next uint64
}

// Allocate implements driver.Device.
func (c *counter) Allocate(m driver.Memory, size uint64) (*driver.Buffer, error) {
	c.next = aligned(c.next + 256)
	b := &driver.Buffer{Address: c.next, Size: size}
	if m != driver.Local {
		b.Bytes = make([]byte, size)
	}
	c.next += size
	return b, nil
}

// Free implements driver.Device.
func (c *counter) Free(...*driver.Buffer) {}

func (b *memory) free() {
	b.d.Free(b.all...)
	b.all = nil
}

// allocate allocates a buffer. If there is too little memory, the error names options that need less: another program
// may have taken memory since the plan was made.
func allocate(d driver.Device, m driver.Memory, size uint64, what string) (*driver.Buffer, error) {
	x, err := d.Allocate(m, max(size, 16))
	switch {
	case errors.Is(err, driver.ErrScarce) && m == driver.Staging:
		return nil, fmt.Errorf("%s: %w: a smaller --ram leaves more of the weights in the file", what, err)
	case errors.Is(err, driver.ErrScarce):
		return nil, fmt.Errorf("%s: %w: a smaller --vram leaves more of the weights in memory; a smaller --ctx, fewer "+
			"sequences (--parallel) and --kv q8 make the KV cache smaller; or end what else uses the card", what, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return x, nil
}

// words is n values of a type, at an offset in bytes of a mapped buffer.
func words[T any](b *driver.Buffer, at, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b.Bytes[at])), n)
}

// aligned rounds a size or an offset up to a multiple of 256 bytes.
func aligned(n uint64) uint64 { return (n + 255) &^ 255 }
