//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Fused says whether the kernels for heads of a common shape serve, in which Attend and Rotate rotate and store. Else
// Turn and Append do that, and Attend cannot quantise.
func (k *Kernels) Fused(h *kernel.Heads) bool {
	_, err := k.attend(h)
	return err == nil || k.bySquares(h)
}

// Rotate records a kernel that rotates queries in place, rotates and stores keys, and stores values.
func (k *Kernels) Rotate(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	if !k.Fused(h) {
		return fmt.Errorf("heads of %d and %d features in %s want Turn and Append", h.Features, h.ValueFeatures(), h.Format())
	}
	c := shaders.RopeConstants{Features: uint32(h.Features), Dims: uint32(h.Dims), Heads: uint32(h.Query),
		Kvheads: uint32(h.KV)}
	if h.Interleaved {
		c.Interleaved = 1
	}
	shader, err := k.kernel(shaders.Rope, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.RopePush{X: a.X, Q: a.X, Keys: a.Keys, Values: a.Values, Rows: a.Rows, Tables: a.Tables,
		Angles: a.Angles, Count: a.Count, XStride: uint32(a.XStride), QStride: uint32(a.XStride)})
	r.Dispatch(uint32(h.Query+2*h.KV), uint32(a.N), 1)
	return nil
}

// lanes is how many threads share a position: as many as the smallest subgroup has, 16 at most, so that each has whole
// words of 16 bytes of a key; 0: no number fits.
func (k *Kernels) lanes(h *kernel.Heads) uint32 {
	n := uint32(16)
	for n > max(8, k.d.Facts.Subgroup.Min) || n > 0 && h.Features%(8*int(n)) != 0 {
		n /= 2
	}
	return n
}

// attend chooses the constants of attend.comp: as many query heads at once as shared memory has room for.
func (k *Kernels) attend(h *kernel.Heads) (shaders.AttendConstants, error) {
	c := shaders.AttendConstants{Lanes: k.lanes(h), Features: uint32(h.Features), Queries: uint32(h.Query / h.KV),
		Dims: uint32(h.Dims)}
	if h.Query%h.KV != 0 || c.Lanes == 0 || h.ValueFeatures() != h.Features || h.Format() != backend.KVF16.Format {
		return c, fmt.Errorf("attention of %d query heads, %d KV heads of %d and %d features in %s has no kernel",
			h.Query, h.KV, h.Features, h.ValueFeatures(), h.Format())
	}
	shared := func(once uint32) uint32 {
		return 4*(c.Queries+2)*c.Features + 64*(c.Queries+1) + 4 + 4*once*(c.Threads/c.Lanes)*(c.Features+3)
	}
	// A thread has no less than one position of a block.
	for c.Threads = min(256, k.d.Facts.Invocations, 64*c.Lanes); c.Threads >= max(64, c.Lanes); c.Threads /= 2 {
		for once := c.Queries; once > 0; once-- {
			if c.Queries%once == 0 && shared(once) <= k.d.Facts.Shared {
				c.AtOnce = once
				return c, nil
			}
		}
	}
	return c, fmt.Errorf("attention of heads of %d features needs %d bytes of shared memory, the device has %d",
		h.Features, shared(1), k.d.Facts.Shared)
}

// Attend records attention, and the kernel that joins the partial results of its parts. Where Fused says no, X has
// query heads alone, rotated before, keys and values were stored before, with a barrier between, and Y is float32.
func (k *Kernels) Attend(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	if !k.Fused(h) {
		return k.attendAny(r, h, a)
	}
	splits := k.attendGroups
	if k.bySquares(h) {
		splits = k.attendBySquares
	}
	if err := splits(r, h, a); err != nil {
		return err
	}
	m := shaders.MergeConstants{Features: uint32(h.Features), Heads: uint32(h.Query)}
	if a.Quantise {
		m.Quantise = 1
	}
	merge, err := k.kernel(shaders.Merge, m.List())
	if err != nil {
		return err
	}
	r.Barrier()
	vk.Use(r, merge, &shaders.MergePush{Parts: a.Parts, Y: a.Y, Rows: a.Rows, Sinks: a.Sinks, YStride: uint32(a.YStride)})
	r.Dispatch(uint32((h.Query*h.Features+255)/256), uint32(a.N), 1)
	return nil
}

// attendGroups records the parts of attention, by attend.comp.
func (k *Kernels) attendGroups(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	c, err := k.attend(h)
	if err != nil {
		return err
	}
	c.Rows = 1
	switch {
	case a.Alone:
		c.Fused = 1
	case a.N > kernel.FewColumns:
		c.Rows = uint32(k.rows)
	}
	if h.Interleaved {
		c.Interleaved = 1
	}
	if a.Normed && a.Alone {
		c.Normed = 1
	}
	attend, err := k.kernel(shaders.Attend, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, attend, &shaders.AttendPush{X: a.X, Keys: a.Keys, Values: a.Values, Parts: a.Parts, Rows: a.Rows,
		Tables: a.Tables, Angles: a.Angles, Count: a.Count, XStride: uint32(a.XStride), Window: uint32(a.Window),
		Scale: a.Scale * math.Log2E, Cap: a.Cap * math.Log2E, QueryGain: a.QueryGain, KeyGain: a.KeyGain, Eps: a.Eps,
		Chunked: bit(a.Chunked), Size: uint32(a.N)})
	r.Dispatch(uint32(h.KV), uint32(kernel.MostSplits(a.Depth)), (uint32(a.N)+c.Rows-1)/c.Rows)
	return nil
}

// bit is a flag as shaders take it.
func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
