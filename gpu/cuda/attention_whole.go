//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// wholeKernels are the kernels of attend_whole.cu: the most features of a head, and how many eights of columns, pairs
// of a row and a query head, a block has. Those for many rows are not for few.
var wholeKernels = [...]struct {
	module       string
	wide, groups int
	many         bool
}{{"attend_whole_128_rows", 128, 2, true}, {"attend_whole_128", 128, 1, false}, {"attend_whole_256", 256, 1, false}}

// The warps of a block of attend_whole.cu.
const wholeWarps = 8

// wholeShape is how attend_whole.cu is launched.
type wholeShape struct {
	module     string
	once, each int // query heads and rows of a block
	shared     int
}

// wholeShape chooses how so many rows attend; false: attend_whole.cu does not take such heads. The bits do not depend
// on what is chosen.
func (k *Kernels) wholeShape(h *kernel.Heads, rows int) (s wholeShape, ok bool) {
	n, most := max(h.Features, h.ValueFeatures()), k.c.Facts.Shared-1<<10 // the driver takes some for itself
	if h.Format() != backend.KVQ8.Format || h.Features%bytesGrain != 0 || h.ValueFeatures()%bytesGrain != 0 {
		return s, false
	}
	for _, x := range wholeKernels {
		if n > x.wide || x.many && rows <= k.fewRows {
			continue
		}
		s.module = x.module
		for s.once = min(bytesHeads, h.Query/h.KV); s.once > 0; s.once-- {
			if h.Query/h.KV%s.once != 0 {
				continue
			}
			s.each = 1
			if rows > k.fewRows {
				s.each = min(rows, bytesHeads*x.groups/s.once)
			}
			for ; s.each > 0; s.each-- {
				if s.shared = wholeShared(h, s.once*s.each); s.shared <= most {
					return s, true
				}
			}
		}
	}
	return s, false
}

// wholeShared is the shared memory of a block of attend_whole.cu with so many columns.
func wholeShared(h *kernel.Heads, columns int) int {
	const weights = 4 * (68 + 56)
	return columns*(h.Features/bytesGrain*100+8+12*wholeWarps+wholeWarps*max(weights, 4*h.ValueFeatures())) + 16
}

// attendWholeArgs is the arguments of attend_whole.cu.
// Wide: they are the arguments of a kernel.
type attendWholeArgs struct {
	x, keys, values, parts, rows, tables, count                    uint64
	xStride, window                                                uint32
	scale, cap                                                     float32
	chunked, features, valueFeatures, queries, once, each, size, _ uint32
}

// attendWhole records the parts of attention to keys and values in bytes.
func (k *Kernels) attendWhole(r *recording, h *kernel.Heads, a *kernel.Attention, s wholeShape) error {
	grid := [3]uint32{uint32(h.Query / s.once), evenSplits(a.Depth), parts(a.N, s.each)}
	return launch(k, r, s.module, "attendWhole", grid, 32*wholeWarps, s.shared, &attendWholeArgs{x: a.X, keys: a.Keys,
		values: a.Values, parts: a.Parts, rows: a.Rows, tables: a.Tables, count: a.Count, xStride: uint32(a.XStride),
		window: uint32(a.Window), scale: a.Scale * math.Log2E, cap: a.Cap * math.Log2E, chunked: bit(a.Chunked),
		features: uint32(h.Features), valueFeatures: uint32(h.ValueFeatures()), queries: uint32(h.Query / h.KV),
		once: uint32(s.once), each: uint32(s.each), size: uint32(a.N)})
}
