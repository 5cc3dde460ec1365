//go:build cgo && linux

package vulkan

import (
	"fmt"
	"testing"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/stretchr/testify/require"
)

// attendWays are the kernels that may compute a prompt's attention; one that cannot take a shape is left out.
var attendWays = []struct {
	name     string
	together bool // attend_rows.comp
	any      bool // attend_any.comp and its like, where attend.comp would serve
}{{"turns", false, false}, {"splits", false, true}, {"together", true, true}}

// BenchmarkAttend is attention of a prompt's 512 rows behind so many positions, as a model records it, by each way that
// a shape has, and of one row of the usual shape, for which two orders of addition are compared. It tells whether
// attendsTogether is to be said, and whether caches of halves should take the order of attend_any.comp, too: in 35 s.
func BenchmarkAttend(b *testing.B) {
	g := open(b)
	n, depths := 512, []int{0, 512, 3584, 8192}
	if g.d.Facts.Kind == vk.CPU {
		n, depths = 17, []int{0}
	}
	for _, h := range []Heads{
		{Query: 32, KV: 8, Features: 128}, {Query: 32, KV: 8, Features: 64}, {Query: 64, KV: 8, Features: 128},
	} {
		for _, h.Cache = range []backend.KVType{backend.KVF16, backend.KVF32, backend.KVQ8} {
			for _, depth := range depths {
				if h.Query == 64 && depth%3584 != 0 {
					continue
				}
				g.benchAttend(b, h, n, depth)
				if h.Query == 32 && h.Features == 128 && h.Cache == backend.KVF16 {
					g.benchAttend(b, h, 1, depth)
				}
			}
		}
	}
}

func (g *gpu) benchAttend(b *testing.B, h Heads, n, depth int) {
	blocks := blocksOf(depth + n)
	rows, tables := g.room(uint64(8*n)), make([]uint32, blocks)
	for i := range n {
		view[Row](rows.Bytes)[i] = Row{Position: uint32(depth + i)}
	}
	for i := range tables {
		tables[i] = uint32(blocks - 1 - i)
	}
	width := h.Query * h.Features
	a := Attention{X: g.local(uint64(4 * width * n)).Address, Y: g.local(uint64(4 * width * n)).Address,
		Keys: g.local(h.KeyBytes(blocks)).Address, Values: g.local(h.ValueBytes(blocks)).Address,
		Parts: g.local(h.PartBytes(min(n, attentionRows))).Address, Tables: g.words(tables...).Address,
		XStride: width, YStride: width, Scale: 1e-3, Depth: depth + n - 1}
	for _, way := range attendWays {
		if !way.any && !g.k.Fused(&h) || way.together && (n == 1 || !g.k.tiles(&h, &Attention{})) {
			continue
		}
		b.Run(fmt.Sprintf("%s/%dof%d/%d/rows%d/depth%d/%s", h.cache(), h.KV, h.Query, h.Features, n, depth, way.name),
			func(b *testing.B) {
				defer func(was bool) { g.k.together = was }(g.k.together)
				g.k.together = way.together
				attend := g.k.Attend
				if way.any {
					attend = g.k.attendAny
				}
				for range b.N {
					us := g.times(5, 2, func(r *vk.Recording) {
						r.Stamp()
						for from := 0; from < n; from += attentionRows {
							a := a
							a.N, a.Rows = min(attentionRows, n-from), rows.Address+uint64(8*from)
							a.X, a.Y = a.X+uint64(4*width*from), a.Y+uint64(4*width*from)
							require.NoError(b, attend(r, &h, &a))
							r.Barrier()
						}
						r.Stamp()
					})
					seen := float64(n) * (float64(depth) + float64(n+1)/2)
					b.ReportMetric(us[0], "µs")
					b.ReportMetric(4*float64(width)*seen/us[0]/1e6, "TFLOP/s")
				}
			})
	}
}
