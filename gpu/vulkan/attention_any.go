//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Caches implements kernel.Table.
func (k *Kernels) Caches(f backend.Format) error { return kernel.KnownCache("Vulkan", f) }

// Append records a kernel.Append.
func (k *Kernels) Append(r *vk.Recording, s *kernel.Append) error {
	h := &s.Heads
	keys, err := k.kernel(shaders.Append, shaders.AppendConstants{Type: kernel.KeyKind(h.Format().K.Open)}.List())
	if err != nil {
		return err
	}
	values, err := k.kernel(shaders.Append, shaders.AppendConstants{Type: kernel.ValueKind(h.Format().V.Open)}.List())
	if err != nil {
		return err
	}
	p := shaders.AppendPush{X: s.K, Cache: s.Keys, Rows: s.Rows, Tables: s.Tables, Count: s.Count,
		Features: uint32(h.Features), Grouped: backend.KVScaled, XStride: uint32(s.KStride)}
	vk.Use(r, keys, &p)
	r.Dispatch(uint32(h.KV), uint32(s.N), 1)
	p.X, p.Cache, p.XStride = s.V, s.Values, uint32(s.VStride)
	p.Features, p.Grouped = uint32(h.ValueFeatures()), uint32(h.ValueFeatures())
	vk.Use(r, values, &p)
	r.Dispatch(uint32(h.KV), uint32(s.N), 1)
	return nil
}

// headsAtOnce is how many query heads share a workgroup, and what it reads of the cache: as many as its memory has room
// for, while enough workgroups are left to keep a card busy. The bits do not depend on it.
func (k *Kernels) headsAtOnce(h *kernel.Heads, groups int) int {
	const most, enough = 8, 512
	once := 1
	for n := 2; n <= most && groups/n >= enough; n *= 2 {
		values := (h.ValueFeatures() + 63) / 64
		if h.Query/h.KV%n != 0 || n*values > 64 || uint32(4*n*(h.Features+130)) > k.d.Facts.Shared {
			break
		}
		once = n
	}
	return once
}

// attendAny is Attend by the kernels for any shape of heads.
func (k *Kernels) attendAny(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	if a.Alone || a.Quantise {
		return errors.New("these heads are rotated and stored before, and quantised after attention: see Fused")
	}
	if h.KV < 1 || h.Query%h.KV != 0 || uint32(4*(h.Features+130)) > k.d.Facts.Shared {
		return fmt.Errorf("attention of %d query heads, %d KV heads of %d features has no kernel",
			h.Query, h.KV, h.Features)
	}
	if h.Format().Seals() {
		return k.attendSealed(r, h, a)
	}
	var err error
	if k.takesTiles(h, a) {
		err = k.attendTogether(r, h, a)
	} else {
		err = k.attendSplits(r, h, a)
	}
	if err != nil {
		return err
	}
	return k.mergeAny(r, h, a)
}

// mergeAny records the kernel that joins the parts, to float32.
func (k *Kernels) mergeAny(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	merge, err := k.kernel(shaders.MergeAny, nil)
	if err != nil {
		return err
	}
	r.Barrier()
	vk.Use(r, merge, &shaders.MergeAnyPush{Parts: a.Parts, Y: a.Y, Rows: a.Rows, Sinks: a.Sinks, Count: a.Count,
		Heads: uint32(h.Query), Features: uint32(h.ValueFeatures()), YStride: uint32(a.YStride)})
	r.Dispatch(uint32((h.Query*h.ValueFeatures()+63)/64), uint32(a.N), 1)
	return nil
}

// attendSplits records the parts of each row by itself, by attend_any.comp.
func (k *Kernels) attendSplits(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	return k.attendParts(r, h, a, false)
}

// attendParts is attendSplits, or, if own, records one part of each row's own block.
func (k *Kernels) attendParts(r *vk.Recording, h *kernel.Heads, a *kernel.Attention, own bool) error {
	splits := kernel.MostSplits(a.Depth)
	if own {
		splits = 1
	}
	once := k.headsAtOnce(h, h.Query*splits*a.N)
	c := shaders.AttendAnyConstants{Type: kernel.KeyKind(h.Format().K.Open), Keys: uint32(h.Features),
		Valuetype: kernel.ValueKind(h.Format().V.Open), Values: uint32(h.ValueFeatures()),
		Queries: uint32(h.Query / h.KV), AtOnce: uint32(once), Open: bit(own)}
	attend, err := k.kernel(shaders.AttendAny, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, attend, &shaders.AttendAnyPush{X: a.X, Keys: a.Keys, Values: a.Values, Parts: a.Parts, Rows: a.Rows,
		Tables: a.Tables, Count: a.Count, XStride: uint32(a.XStride), Window: uint32(a.Window),
		Scale: a.Scale * math.Log2E, Cap: a.Cap * math.Log2E, Chunked: bit(a.Chunked)})
	r.Dispatch(uint32(h.Query/once), uint32(splits), uint32(a.N))
	return nil
}

// tiledPairs is how many pairs of a row and a query head a workgroup of attend_rows.comp has.
const tiledPairs = 64

// tiles says whether attend_rows.comp can take heads of a shape, and rows where they lie.
func (k *Kernels) tiles(h *kernel.Heads, a *kernel.Attention) bool {
	f := &k.d.Facts
	return kernel.CacheKind(h.Format()) != 0 && a.X%16 == 0 && a.XStride%4 == 0 &&
		tiledPairs%(h.Query/h.KV) == 0 && h.Features%backend.KVScaled == 0 && h.ValueFeatures()%64 == 0 &&
		f.Invocations >= 256 && uint32(18<<10+512+max(8<<10+512, 64*h.ValueFeatures())) <= f.Shared
}

// attendTogether records the parts of many rows at a time, by attend_rows.comp, with the bits of attendSplits.
func (k *Kernels) attendTogether(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	c := shaders.AttendRowsConstants{Type: kernel.CacheKind(h.Format()), Keys: uint32(h.Features),
		Values:  uint32(h.ValueFeatures()),
		Queries: uint32(h.Query / h.KV)}
	attend, err := k.kernel(shaders.AttendRows, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, attend, &shaders.AttendRowsPush{X: a.X, Keys: a.Keys, Values: a.Values, Parts: a.Parts, Rows: a.Rows,
		Tables: a.Tables, Count: a.Count, XStride: uint32(a.XStride), Window: uint32(a.Window),
		Scale: a.Scale * math.Log2E, Cap: a.Cap * math.Log2E, Chunked: bit(a.Chunked), Size: uint32(a.N)})
	rows := tiledPairs / (h.Query / h.KV)
	r.Dispatch(uint32(h.KV), uint32(kernel.MostSplits(a.Depth)), uint32((a.N+rows-1)/rows))
	return nil
}
