//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Caches implements kernel.Table.
func (k *Kernels) Caches(f backend.Format) error { return kernel.KnownCache("CUDA", f) }

// appendArgs is the arguments of append.cu.
type appendArgs struct {
	x, cache, rows, tables, count    uint64
	kind, features, grouped, xStride uint32
}

func (k *Kernels) append(r *recording, s *kernel.Append) error {
	h := &s.Heads
	if err := k.Caches(h.Format()); err != nil {
		return err
	}
	grid := [3]uint32{uint32(h.KV), uint32(s.N), 1}
	a := appendArgs{x: s.K, cache: s.Keys, rows: s.Rows, tables: s.Tables, count: s.Count,
		kind:     kernel.KeyKind(h.Format().K.Open),
		features: uint32(h.Features), grouped: backend.KVScaled, xStride: uint32(s.KStride)}
	if err := launch(k, r, "append", "append", grid, 64, 0, &a); err != nil {
		return err
	}
	values := a // a copy: a recording keeps the address of its arguments
	values.x, values.cache, values.xStride = s.V, s.Values, uint32(s.VStride)
	values.kind = kernel.ValueKind(h.Format().V.Open)
	values.features, values.grouped = uint32(h.ValueFeatures()), uint32(h.ValueFeatures())
	return launch(k, r, "append", "append", grid, 64, 0, &values)
}

// The most features of a value, and query heads, that a block of attend_any.cu takes.
const (
	anyFeatures = 512
	anyHeads    = 8
)

// headsAtOnce is how many query heads share a block, and what it reads of the cache: as many as there are, while enough
// blocks are left to keep a card busy. The bits do not depend on it.
func (k *Kernels) headsAtOnce(h *kernel.Heads, blocks int) int {
	enough, once := 2*k.c.Facts.Processors, 1
	for n := 2; n <= anyHeads && blocks/n >= enough && h.Query/h.KV%n == 0; n *= 2 {
		once = n
	}
	return once
}

// attendAnyArgs is the arguments of attend_any.cu.
// Wide: they are the arguments of a kernel.
type attendAnyArgs struct {
	x, keys, values, parts, rows, tables, count     uint64
	xStride, window                                 uint32
	scale, cap                                      float32
	chunked, kind, features, valueFeatures, queries uint32
	valueKind, open, _                              uint32
}

// attendAny records attention of heads of any size over a cache of any known format. Queries were rotated, and keys and
// values stored, before.
func (k *Kernels) attendAny(r *recording, h *kernel.Heads, a *kernel.Attention) error {
	unknown := k.Caches(h.Format())
	switch {
	case a.Alone || a.Quantise:
		return errors.New("these heads are rotated and stored before, and quantised after attention: see Fused")
	case unknown != nil:
		return unknown
	case h.KV < 1 || h.Query%h.KV != 0 || h.ValueFeatures() > anyFeatures:
		return fmt.Errorf("attention of %d query heads, %d KV heads of %d and %d features has no kernel", h.Query, h.KV,
			h.Features, h.ValueFeatures())
	}
	if h.Format().Seals() {
		return k.attendSealed(r, h, a)
	}
	shape, whole := k.wholeShape(h, a.N)
	var err error
	if whole {
		err = k.attendWhole(r, h, a, shape)
	} else {
		err = k.attendSplits(r, h, a)
	}
	if err != nil {
		return err
	}
	r.Barrier()
	return k.mergeAny(r, h, a, whole)
}

// attendSplits records the parts of attention: of many rows at a time if attend_rows.cu takes them, else row by row.
func (k *Kernels) attendSplits(r *recording, h *kernel.Heads, a *kernel.Attention) error {
	kind, splits := kernel.CacheKind(h.Format()), kernel.MostSplits(a.Depth)
	if wide := h.ValueFeatures() / 64; a.N > k.fewRows && takesRows(h, a) {
		shared, each := 4*(max(1024*wide, 2176)+64*68+6*64), tiledPairs/(h.Query/h.KV)
		grid := [3]uint32{uint32(h.KV), uint32(splits), parts(a.N, each)}
		return launch(k, r, fmt.Sprintf("attend_rows_%d", wide), "attendRows", grid, 256, shared, &attendRowsArgs{x: a.X,
			keys: a.Keys, values: a.Values, parts: a.Parts, rows: a.Rows, tables: a.Tables, count: a.Count,
			xStride: uint32(a.XStride), window: uint32(a.Window), scale: a.Scale * math.Log2E, cap: a.Cap * math.Log2E,
			chunked: bit(a.Chunked), kind: kind, features: uint32(h.Features), queries: uint32(h.Query / h.KV),
			size: uint32(a.N)})
	}
	return k.attendParts(r, h, a, false)
}

// attendParts records the parts of each row by itself; or, if own, one part of the row's own block.
func (k *Kernels) attendParts(r *recording, h *kernel.Heads, a *kernel.Attention, own bool) error {
	splits := kernel.MostSplits(a.Depth)
	if own {
		splits = 1
	}
	once := k.headsAtOnce(h, h.Query*splits*a.N)
	threads := max(64, (h.ValueFeatures()+63)/64*64)
	grid := [3]uint32{uint32(h.Query / once), uint32(splits), uint32(a.N)}
	return launch(k, r, fmt.Sprintf("attend_any_%d", once), "attendAny", grid, threads, 4*once*(h.Features+64),
		&attendAnyArgs{x: a.X, keys: a.Keys, values: a.Values, parts: a.Parts, rows: a.Rows, tables: a.Tables, count: a.Count,
			xStride: uint32(a.XStride), window: uint32(a.Window), scale: a.Scale * math.Log2E, cap: a.Cap * math.Log2E,
			chunked: bit(a.Chunked), kind: kernel.KeyKind(h.Format().K.Open), features: uint32(h.Features),
			valueKind: kernel.ValueKind(h.Format().V.Open), valueFeatures: uint32(h.ValueFeatures()),
			queries: uint32(h.Query / h.KV), open: bit(own)})
}

// attendRowsArgs is the arguments of attend_rows.cu.
// Wide: they are the arguments of a kernel.
type attendRowsArgs struct {
	x, keys, values, parts, rows, tables, count uint64
	xStride, window                             uint32
	scale, cap                                  float32
	chunked, kind, features, queries, size, _   uint32
}

// tiledPairs is how many pairs of a row and a query head a block of attend_rows.cu has.
const tiledPairs = 64

// takesRows says whether attend_rows.cu can take heads of a shape, and rows where they lie. Its bits are those of
// attend_any.cu.
func takesRows(h *kernel.Heads, a *kernel.Attention) bool {
	wide := h.ValueFeatures() / 64
	return kernel.CacheKind(h.Format()) != 0 && a.X%16 == 0 && a.XStride%4 == 0 &&
		tiledPairs%(h.Query/h.KV) == 0 && h.Features%backend.KVScaled == 0 && h.ValueFeatures()%64 == 0 &&
		bits.OnesCount(uint(wide)) == 1
}

// mergeAnyArgs is the arguments of merge_any.cu.
type mergeAnyArgs struct {
	parts, y, rows, sinks, count    uint64
	heads, features, yStride, whole uint32
}

// mergeAny records the kernel that joins the parts, which are attend_whole.cu's or others, to float32.
func (k *Kernels) mergeAny(r *recording, h *kernel.Heads, a *kernel.Attention, whole bool) error {
	grid := [3]uint32{parts(h.Query*h.ValueFeatures(), 64), uint32(a.N), 1}
	return launch(k, r, "merge_any", "mergeAny", grid, 64, 0, &mergeAnyArgs{parts: a.Parts, y: a.Y, rows: a.Rows,
		sinks: a.Sinks, count: a.Count, heads: uint32(h.Query), features: uint32(h.ValueFeatures()),
		yStride: uint32(a.YStride), whole: bit(whole)})
}
