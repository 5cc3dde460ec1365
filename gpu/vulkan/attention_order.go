//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// attendRow chooses the constants of attend_row.comp: as many positions are staged at once as shared memory has room
// for.
func (k *Kernels) attendRow(h *Heads) (shaders.AttendRowConstants, error) {
	c := shaders.AttendRowConstants{Features: uint32(h.Features), Queries: uint32(h.Query / max(h.KV, 1)),
		Dims: uint32(h.Dims), Threads: min(256, k.d.Facts.Invocations)}
	if h.KV < 1 || h.Query%h.KV != 0 || h.Features%8 != 0 || h.values() != h.Features || h.cache() != backend.KVF16 ||
		c.Features > 2*c.Threads || c.Queries > c.Threads {
		return c, fmt.Errorf("attention of %d query heads, %d KV heads of %d and %d features in %s has no kernel",
			h.Query, h.KV, h.Features, h.values(), h.cache())
	}
	for c.Staged = 64; c.Staged >= 16; c.Staged /= 2 {
		if c.Staged*(2*c.Features+16)+c.Queries*(4*c.Features+564)+4*c.Features+64*(c.Queries+1)+64 <= k.d.Facts.Shared {
			return c, nil
		}
	}
	return c, fmt.Errorf("attention of %d heads of %d features at once needs more shared memory than the device's %d bytes",
		c.Queries, h.Features, k.d.Facts.Shared)
}

// attendOrdered records splits of caches of halves in the order of attend_any.comp: of a row by itself, or of many.
func (k *Kernels) attendOrdered(r *vk.Recording, h *Heads, a *Attention) error {
	if !a.Alone && k.together && a.N > fewColumns && k.tiles(h, a) {
		return k.attendTogether(r, h, a)
	}
	c, err := k.attendRow(h)
	if err != nil {
		return err
	}
	c.Fused, c.Interleaved, c.Normed = bit(a.Alone), bit(h.Interleaved), bit(a.Normed && a.Alone)
	attend, err := k.kernel(shaders.AttendRow, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, attend, &shaders.AttendRowPush{X: a.X, Keys: a.Keys, Values: a.Values, Parts: a.Parts, Rows: a.Rows,
		Tables: a.Tables, Angles: a.Angles, Count: a.Count, XStride: uint32(a.XStride), Window: uint32(a.Window),
		Scale: a.Scale * math.Log2E, Cap: a.Cap * math.Log2E, QueryGain: a.QueryGain, KeyGain: a.KeyGain, Eps: a.Eps,
		Chunked: bit(a.Chunked)})
	r.Dispatch(uint32(h.KV), uint32(maxParts(a.Depth)), uint32(a.N))
	return nil
}
