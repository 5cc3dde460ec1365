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

// attendsBySquares says whether a device can compute attention by cooperative matrices of half precision, 16 × 16 each
// (squares). Its subgroups must have ballots, too.
func attendsBySquares(f *vk.Facts) bool {
	return hasHalves(f) && f.Subgroup.Operations&vk.SubgroupBallot != 0
}

// bySquares says whether attention of some heads is computed by squares, in attend_matrix.comp. It must depend on their
// shape alone, since the bits do.
func (k *Kernels) bySquares(h *kernel.Heads) bool {
	_, err := k.attendMatrix(h, 1)
	return k.attendSquares && err == nil
}

// attendMatrix chooses the constants of attend_matrix.comp for a number of rows. A workgroup has as many squares of
// pairs of a row and a query head as there are, and as shared memory has room for.
func (k *Kernels) attendMatrix(h *kernel.Heads, rows int) (shaders.AttendMatrixConstants, error) {
	c := shaders.AttendMatrixConstants{Features: uint32(h.Features), Queries: uint32(h.Query / max(h.KV, 1)),
		Dims: uint32(h.Dims), Interleaved: bit(h.Interleaved)}
	tiles := uint32(1)
	for 16*tiles < c.Queries {
		tiles *= 2
	}
	c = squaresOfPairs(c, tiles)
	if h.KV < 1 || h.Query%h.KV != 0 || h.Features%16 != 0 || h.ValueFeatures() != h.Features ||
		h.Format() != backend.KVF16.Format ||
		tiles > 4 || k.attendShared(&c) > k.d.Facts.Shared {
		return c, fmt.Errorf("attention of %d query heads, %d KV heads of %d and %d features in %s has no squares",
			h.Query, h.KV, h.Features, h.ValueFeatures(), h.Format())
	}
	for c.Tiles < 4 && rows > 1 && 16*int(c.Tiles) < rows*int(c.Queries) {
		more := squaresOfPairs(c, 2*c.Tiles)
		if k.attendShared(&more) > k.d.Facts.Shared {
			break
		}
		c = more
	}
	return c, nil
}

// squaresOfPairs sets how many squares of pairs a workgroup has, and its threads: with half of these each would hold
// twice as much, which does not fit in registers.
func squaresOfPairs(c shaders.AttendMatrixConstants, tiles uint32) shaders.AttendMatrixConstants {
	c.Tiles, c.Threads = tiles, 128
	if tiles > 1 && c.Features%32 == 0 {
		c.Threads = 256
	}
	return c
}

// emulates says whether squares are computed without cooperative matrices, as tests do.
func (k *Kernels) emulates() bool { return !k.squares || k.emulate }

// attendShared is the bytes of shared memory that attend_matrix.comp takes, with norms.
func (k *Kernels) attendShared(c *shaders.AttendMatrixConstants) uint32 {
	pairs, line := 16*c.Tiles, 2*(c.Features+8)
	own := 4*c.Features + 64*(c.Queries+1) + 4
	if k.emulates() {
		own += pairs * line
	}
	return 64*line + 4*64*(pairs+8) + 8*18*pairs + 4*c.Threads + 16*pairs + 8*max(pairs/max(c.Queries, 1), 1) + own
}

// attendBySquares records the parts of attention, by squares.
func (k *Kernels) attendBySquares(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	rows := a.N
	if a.Alone {
		rows = 1
	}
	c, err := k.attendMatrix(h, rows)
	if err != nil {
		return err
	}
	if a.X%16 != 0 || a.XStride%4 != 0 {
		return fmt.Errorf("rows of queries lie at %#x, %d values apart: want multiples of 16 bytes", a.X, a.XStride)
	}
	each := 16 * int(c.Tiles) / int(c.Queries)
	if a.Alone {
		c.Fused, each = 1, 1
		c.Normed = bit(a.Normed)
	}
	module := shaders.AttendMatrix
	if k.emulates() {
		module = shaders.AttendSquares
	}
	attend, err := k.kernel(module, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, attend, &shaders.AttendMatrixPush{X: a.X, Keys: a.Keys, Values: a.Values, Parts: a.Parts, Rows: a.Rows,
		Tables: a.Tables, Angles: a.Angles, Count: a.Count, XStride: uint32(a.XStride), Window: uint32(a.Window),
		Scale: a.Scale * math.Log2E, Cap: a.Cap * math.Log2E, QueryGain: a.QueryGain, KeyGain: a.KeyGain, Eps: a.Eps,
		Chunked: bit(a.Chunked), Size: uint32(a.N)})
	r.Dispatch(uint32(h.KV), uint32(kernel.MostSplits(a.Depth)), uint32((a.N+each-1)/each))
	return nil
}
