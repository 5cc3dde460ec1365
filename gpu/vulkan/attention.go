//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// maxSplits is the most parts that a row's positions are divided into (shaders/lib/step.glsl).
const maxSplits = 16

// Row is one row of a step, as kernels read it.
type Row struct {
	Position uint32 // in its sequence
	Table    uint32 // index in the block tables of its sequence's first block
}

// Heads is the shape of attention, and of what is cached for it.
type Heads struct {
	Query, KV, Features int
	Values              int // features of a value; 0: as many as a key's
	Dims                int // that rotate, from the first; 0: none
	Interleaved         bool
	Cache               backend.KVType // 0: half precision
}

// values is the features of a value.
func (h *Heads) values() int {
	if h.Values == 0 {
		return h.Features
	}
	return h.Values
}

func (h *Heads) cache() backend.KVType {
	if h.Cache == 0 {
		return backend.KVF16
	}
	return h.Cache
}

// KeyBytes is the memory of so many blocks of keys of one layer.
func (h *Heads) KeyBytes(blocks int) uint64 {
	return h.runs(blocks, h.Features, (h.Features+backend.KVScaled-1)/backend.KVScaled)
}

// ValueBytes is the memory of so many blocks of values of one layer.
func (h *Heads) ValueBytes(blocks int) uint64 { return h.runs(blocks, h.values(), 1) }

// runs is what lib/cache.glsl says.
func (h *Heads) runs(blocks, features, scales int) uint64 {
	each := 2 * features
	switch h.cache() {
	case backend.KVF32:
		each = 4 * features
	case backend.KVQ8:
		each = features + 4*scales
	}
	return uint64(blocks) * uint64(h.KV) * backend.BlockSize * uint64(each)
}

// PartBytes is the memory that Attend needs for its parts, for so many rows.
func (h *Heads) PartBytes(rows int) uint64 {
	return uint64(rows*h.Query*maxSplits) * uint64(h.values()+4) * 4
}

// Attention is one layer's attention for the rows of a step. All but the last three fields are addresses.
type Attention struct {
	X            uint64 // float32 rows: query heads; for Rotate and Alone then key heads and value heads
	Y            uint64 // rows for the projection: quantised, or float32
	Keys, Values uint64 // the layer's
	Parts        uint64
	Rows         uint64 // of Row
	Tables       uint64 // of uint32 block numbers
	Angles       uint64 // [row][Dims/2] cosine and sine, float32
	// QueryGain and KeyGain, by feature of a head, are of norms of each head that come first where Alone; 0: ones.
	QueryGain, KeyGain uint64
	Count              uint64 // of a uint32: rows that are there; 0: all
	Sinks              uint64 // a logit for each query head, times log2(e); 0: none

	XStride, YStride int // in float32
	N                int // rows
	// Alone says that no two rows are of one sequence: then rotation and storing are part of attention. Else Rotate
	// must be recorded before, with a barrier between.
	Alone    bool
	Normed   bool    // if Alone: heads of queries and keys are normalised first
	Eps      float32 // of that
	Quantise bool
	Scale    float32
	Cap      float32 // of scores; 0: none
	Window   int     // positions that are seen; 0: all
	Chunked  bool    // of the row's own chunk of Window positions
	Depth    int     // no row's position is beyond it
}

// Splits is how many parts a row at a position has.
func Splits(position int) int {
	depth := 512
	for depth <= position {
		depth *= 2
	}
	parts := 16
	if depth < 2048 {
		parts = 8
	}
	return position/(depth/parts) + 1
}

// Fused says whether the kernels for heads of a common shape serve: then rotation and storing may be part of Attend, or
// are done by Rotate. Else they are Turn's and Append's, and Attend cannot quantise.
func (k *Kernels) Fused(h *Heads) bool {
	_, err := k.attend(h)
	return err == nil || k.bySquares(h)
}

// Rotate records the rotation of queries, in place, and of keys, and the storing of keys and values.
func (k *Kernels) Rotate(r *vk.Recording, h *Heads, a *Attention) error {
	if !k.Fused(h) {
		return fmt.Errorf("heads of %d and %d features in %s want Turn and Append", h.Features, h.values(), h.cache())
	}
	c := shaders.RopeConstants{Features: uint32(h.Features), Dims: uint32(h.Dims), Heads: uint32(h.Query),
		Kvheads: uint32(h.KV)}
	if h.Interleaved {
		c.Interleaved = 1
	}
	kernel, err := k.kernel(shaders.Rope, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.RopePush{X: a.X, Q: a.X, Keys: a.Keys, Values: a.Values, Rows: a.Rows, Tables: a.Tables,
		Angles: a.Angles, Count: a.Count, XStride: uint32(a.XStride), QStride: uint32(a.XStride)})
	r.Dispatch(uint32(h.Query+2*h.KV), uint32(a.N), 1)
	return nil
}

// lanes is how many threads share a position: as many as a subgroup has, 16 at most, with whole words of 16 bytes.
func (k *Kernels) lanes(h *Heads) uint32 {
	n := uint32(16)
	for n > max(8, k.d.Facts.Subgroup.Min) || n > 0 && h.Features%(8*int(n)) != 0 {
		n /= 2
	}
	return n
}

// attend chooses the constants: as many query heads are joined at once as shared memory has room for.
func (k *Kernels) attend(h *Heads) (shaders.AttendConstants, error) {
	c := shaders.AttendConstants{Lanes: k.lanes(h), Features: uint32(h.Features), Queries: uint32(h.Query / h.KV),
		Dims: uint32(h.Dims)}
	if h.Query%h.KV != 0 || c.Lanes == 0 || h.values() != h.Features || h.cache() != backend.KVF16 {
		return c, fmt.Errorf("attention of %d query heads, %d KV heads of %d and %d features in %s has no kernel",
			h.Query, h.KV, h.Features, h.values(), h.cache())
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

// Attend records attention and the joining of its parts. Where Fused says no, X has but query heads, rotated before,
// keys and values were stored before, with a barrier between, and Y is float32.
func (k *Kernels) Attend(r *vk.Recording, h *Heads, a *Attention) error {
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

// attendGroups records splits by attend.comp.
func (k *Kernels) attendGroups(r *vk.Recording, h *Heads, a *Attention) error {
	c, err := k.attend(h)
	if err != nil {
		return err
	}
	c.Rows = 1
	switch {
	case a.Alone:
		c.Fused = 1
	case a.N > fewColumns:
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
	r.Dispatch(uint32(h.KV), uint32(maxParts(a.Depth)), (uint32(a.N)+c.Rows-1)/c.Rows)
	return nil
}

// bit is how shaders are told.
func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// maxParts is the most parts that any row up to a position has: not the last one's, where lengths double.
func maxParts(position int) int {
	most := 8
	if position >= 2047 {
		most = maxSplits
	}
	return max(most, Splits(position))
}
