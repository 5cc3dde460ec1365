//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// buffers are a model's, freed together.
type buffers struct {
	d   *vk.Device
	all []*vk.Buffer
}

// take allocates; what the host reaches is zeroed.
func (b *buffers) take(p vk.Place, size uint64, what string) (*vk.Buffer, error) {
	x, err := b.raw(p, size, what)
	if err == nil {
		clear(x.Bytes)
	}
	return x, err
}

// raw allocates what is written before it is read.
func (b *buffers) raw(p vk.Place, size uint64, what string) (*vk.Buffer, error) {
	x, err := allocate(b.d, p, size, what)
	if err != nil {
		return nil, err
	}
	b.all = append(b.all, x)
	return x, nil
}

func (b *buffers) free() {
	b.d.Free(b.all...)
	b.all = nil
}

// allocate takes memory for something. If there is too little, the error says what would need less: another program may
// have taken it since it was planned with.
func allocate(d *vk.Device, p vk.Place, size uint64, what string) (*vk.Buffer, error) {
	x, err := d.Allocate(p, max(size, 16))
	switch {
	case vk.Scarce(err) && p == vk.Staging:
		return nil, fmt.Errorf("%s: %w: a smaller --ram leaves more of the weights in the file", what, err)
	case vk.Scarce(err):
		return nil, fmt.Errorf("%s: %w: a smaller --vram leaves more of the weights in memory; a smaller --ctx, fewer "+
			"sequences (--parallel) and --kv q8 make the KV cache smaller; or end what else uses the card", what, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return x, nil
}
