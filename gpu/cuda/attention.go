//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// attendKernel is a kernel of attend.cu, which multiplies on the card's matrix units, for heads of one number of
// features.
type attendKernel struct {
	module string
	teams  int // warps that share the same pairs of a row and a query head
	deep   int // how many times 16 pairs they share
}

// attendKernels are the kernels for few pairs of a row and a query head, and for many, by features of a head. The bits
// do not depend on which is taken.
var attendKernels = map[int][2]attendKernel{
	16:  {{"attend_16", 1, 1}, {"attend_16", 1, 1}},
	32:  {{"attend_32", 1, 1}, {"attend_32", 1, 1}},
	64:  {{"attend_64_few", 4, 1}, {"attend_64", 1, 2}},
	80:  {{"attend_80_few", 4, 1}, {"attend_80_few", 4, 1}},
	96:  {{"attend_96_few", 4, 1}, {"attend_96_few", 4, 1}},
	128: {{"attend_128_few", 4, 1}, {"attend_128", 1, 2}},
	256: {{"attend_256_few", 4, 1}, {"attend_256", 2, 1}},
}

// joinKernels are the kernels of which a block takes all splits of its rows.
var joinKernels = map[int]attendKernel{
	64: {"attend_64_join", 1, 1}, 96: {"attend_96_join", 1, 1}, 128: {"attend_128_join", 1, 1},
	256: {"attend_256_join", 2, 1},
}

// joinTiles is the most groups of 16 pairs of a block of joinKernels: blocks differ in how much their rows see, and
// more of them fill a card more evenly.
const joinTiles = 4

// joinFrom is how many blocks of joinKernels there have to be: with fewer, splits fill a card better.
const joinFrom = 96

// The most groups of 16 pairs, warps, and stages of the ring, of a block of attend.cu.
const (
	attendTiles  = 8
	attendWarps  = 8
	attendStages = 3
)

// attendShape is how attend.cu is launched.
type attendShape struct {
	attendKernel
	tiles, stages int // groups of 16 pairs; stages of the ring of keys and values in shared memory
	heads, rows   int // query heads and rows of a block
	shared        int
}

// Fused implements kernel.Table.
func (k *Kernels) Fused(h *kernel.Heads) bool {
	_, err := k.attendShape(h, 1)
	return err == nil
}

// attendShape chooses how a number of rows attend to a KV head: with no more threads than they need, and with as much
// of the cache being loaded ahead as a block's shared memory has room for.
func (k *Kernels) attendShape(h *kernel.Heads, rows int) (s attendShape, err error) {
	kernels, ok := attendKernels[h.Features]
	if !ok || h.KV < 1 || h.Query%h.KV != 0 || h.ValueFeatures() != h.Features || h.Format() != backend.KVF16.Format {
		return s, fmt.Errorf("heads of %d and %d features, %d of queries and %d of keys in %s, want Turn and Append",
			h.Features, h.ValueFeatures(), h.Query, h.KV, h.Format())
	}
	queries := h.Query / h.KV
	for i := 1; i >= 0; i-- {
		s.attendKernel = kernels[i]
		if few := kernels[0]; i == 1 && queries*rows <= 16*attendWarps/few.teams {
			continue
		}
		if s.fits(h, queries, rows, k.c.Facts.Shared-1<<10) { // the driver takes some for itself
			return s, nil
		}
	}
	return s, fmt.Errorf("attention of heads of %d features needs more of a block's memory than %d bytes", h.Features,
		k.c.Facts.Shared)
}

// fits chooses the sizes of a block with most bytes of shared memory at most; false: nothing fits. Of kernels that run
// long, two blocks should fit on a multiprocessor: one multiplies while the other computes weights.
func (s *attendShape) fits(h *kernel.Heads, queries, rows, most int) bool {
	tiles := s.tilesOf(queries * rows)
	if s.teams < 4 && s.size(h, queries, rows, tiles, 2) <= most/2 {
		return true
	}
	for ; tiles >= s.deep; tiles /= 2 {
		for stages := attendStages; stages > 0; stages-- {
			if s.size(h, queries, rows, tiles, stages) <= most && (tiles == s.deep || stages > 1) {
				return true
			}
		}
	}
	return false
}

// size gives blocks so many groups of 16 pairs and stages, and returns their bytes of shared memory.
func (s *attendShape) size(h *kernel.Heads, queries, rows, tiles, stages int) int {
	s.tiles, s.stages, s.heads = tiles, stages, min(queries, 16*tiles)
	s.rows = min(rows, 16*tiles/s.heads)
	s.shared = s.sharedBytes(h.Features)
	return s.shared
}

// joinShape chooses the sizes of blocks that take all splits of so many rows; false: there would be too few blocks.
func (k *Kernels) joinShape(h *kernel.Heads, rows int) (s attendShape, ok bool) {
	s.attendKernel, ok = joinKernels[h.Features]
	if !ok {
		return s, false
	}
	queries := h.Query / h.KV
	s.size(h, queries, rows, min(s.tilesOf(queries*rows), joinTiles), 2)
	blocks := h.KV * int(parts(queries, s.heads)) * int(parts(rows, s.rows))
	return s, blocks >= k.joinFrom && s.shared <= k.c.Facts.Shared-1<<10
}

// tilesOf is how many groups of 16 pairs a block takes, if there are so many pairs: a power of two times what warps
// share.
func (s *attendShape) tilesOf(pairs int) int {
	n := s.deep
	for n < attendTiles && n*s.teams/s.deep < attendWarps && 16*n < pairs {
		n *= 2
	}
	return n
}

// sharedBytes is the bytes of shared memory of a block, as attend.cu divides it.
func (s *attendShape) sharedBytes(features int) int {
	line, pairs := 2*(features+8), 16*s.tiles
	n := s.stages*2*64*line + pairs*line + 4*features + 4*pairs*s.teams + 4*17*(s.heads+1)
	if s.teams > 1 {
		n += 2 * 72 * pairs
	}
	return n
}

// rotateArgs is the arguments of rope.cu.
type rotateArgs struct {
	x, keys, values, rows, tables, angles, count uint64
	xStride, features, dims, interleaved         uint32
	heads, kvHeads                               uint32
}

func (k *Kernels) rotate(r *recording, t *kernel.Rotate) error {
	h, a := &t.Heads, &t.Attention
	if _, err := k.attendShape(h, 1); err != nil {
		return err
	}
	grid := [3]uint32{uint32(h.Query + 2*h.KV), uint32(a.N), 1}
	return launch(k, r, "rope", "rope", grid, 64, 4*h.Features, &rotateArgs{x: a.X, keys: a.Keys, values: a.Values,
		rows: a.Rows, tables: a.Tables, angles: a.Angles, count: a.Count, xStride: uint32(a.XStride),
		features: uint32(h.Features), dims: uint32(h.Dims), interleaved: bit(h.Interleaved), heads: uint32(h.Query),
		kvHeads: uint32(h.KV)})
}

// attendArgs is the arguments of attend.cu.
// Wide: they are the arguments of a kernel.
type attendArgs struct {
	x, keys, values, parts, rows, tables, angles, count, queryGain, keyGain uint64
	xStride, window                                                         uint32
	scale, cap, eps                                                         float32
	chunked, size, kvHeads, queries, alone, norms, dims, interleaved        uint32
	stages                                                                  uint32
}

func (k *Kernels) attend(r *recording, t *kernel.Attend) error {
	h, a := &t.Heads, &t.Attention
	if !k.Fused(h) {
		return k.attendAny(r, h, a)
	}
	rows := a.N
	if a.Alone {
		rows = 1
	}
	s, joins := k.joinShape(h, rows)
	splits := 1
	if joins = joins && !a.Alone; !joins {
		var err error
		if s, err = k.attendShape(h, rows); err != nil {
			return err
		}
		splits = kernel.MostSplits(a.Depth)
	}
	queries := h.Query / h.KV
	grid := [3]uint32{uint32(h.KV) * parts(queries, s.heads), uint32(splits), parts(a.N, s.rows)}
	err := launch(k, r, s.module, "attend", grid, 32*s.teams*s.tiles/s.deep, s.shared, &attendArgs{x: a.X, keys: a.Keys,
		values: a.Values, parts: a.Parts, rows: a.Rows, tables: a.Tables, angles: a.Angles, count: a.Count,
		queryGain: a.QueryGain, keyGain: a.KeyGain, xStride: uint32(a.XStride), window: uint32(a.Window),
		scale: a.Scale * math.Log2E, cap: a.Cap * math.Log2E, eps: a.Eps, chunked: bit(a.Chunked), size: uint32(a.N),
		kvHeads: uint32(h.KV), queries: uint32(queries), alone: bit(a.Alone), norms: bit(a.Normed && a.Alone),
		dims: uint32(h.Dims), interleaved: bit(h.Interleaved), stages: uint32(s.stages)})
	if err != nil {
		return err
	}
	r.Barrier()
	return k.merge(r, h, a, joins)
}

// mergeArgs is the arguments of merge.cu.
type mergeArgs struct {
	parts, y, rows, sinks, count       uint64
	heads, features, yStride, quantise uint32
	one, _                             uint32
}

// merge records the kernel that joins the parts of attention, to float32 or quantised.
func (k *Kernels) merge(r *recording, h *kernel.Heads, a *kernel.Attention, one bool) error {
	width := h.Query * h.Features
	if a.Quantise {
		width = kernel.PaddedWidth(width)
	}
	return launch(k, r, "merge", "merge", [3]uint32{parts(width, 256), uint32(a.N), 1}, 64, 0, &mergeArgs{parts: a.Parts,
		y: a.Y, rows: a.Rows, sinks: a.Sinks, count: a.Count, heads: uint32(h.Query), features: uint32(h.Features),
		yStride: uint32(a.YStride), quantise: bit(a.Quantise), one: bit(one)})
}
