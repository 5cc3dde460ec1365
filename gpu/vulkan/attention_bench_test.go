//go:build cgo && linux

package vulkan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// attendWays are the kernels that may compute attention; one that cannot take a shape is left out.
var attendWays = []struct {
	name     string
	squares  bool // attend_matrix.comp, where attend.comp would serve
	together bool // attend_rows.comp
	any      bool // attend_any.comp and its like, where one of these would serve
}{
	{name: "groups"}, {name: "squares", squares: true}, {name: "splits", any: true},
	{name: "together", together: true, any: true},
}

// BenchmarkAttend is attention as models record it, by each way that a shape has: of a prompt's 512 rows behind so many
// positions, and of answers, a row of each of so many sequences with rotation and storing. It takes 25 s.
func BenchmarkAttend(b *testing.B) {
	g := open(b)
	n, depths := 512, []int{0, 512, 3584, 8192}
	answers := [][2]int{{1, 512}, {1, 2048}, {1, 8192}, {1, 32768}, {8, 512}, {8, 8192}}
	if g.d.Facts.Kind == vk.CPU {
		n, depths, answers = 17, []int{0}, [][2]int{{2, 70}}
	}
	for _, h := range []kernel.Heads{
		{Query: 32, KV: 8, Features: 128, Dims: 128}, {Query: 32, KV: 8, Features: 64, Dims: 64},
		{Query: 64, KV: 8, Features: 128, Dims: 128},
	} {
		for _, a := range answers {
			if h.Features == 128 && (h.Query == 32 || a[1] == 8192) {
				g.benchAttend(b, h, a[0], a[1], true)
			}
		}
		for _, h.Cache = range []backend.Format{backend.KVF16.Format, backend.KVF32.Format, backend.KVQ8.Format} {
			for _, depth := range depths {
				if (h.Query == 32 && h.Cache == backend.KVF16.Format) || depth%3584 == 0 {
					g.benchAttend(b, h, n, depth, false)
				}
			}
		}
	}
}

// benchAttend is n rows of one sequence, or alone, each of its own, behind depth positions.
func (g *gpu) benchAttend(b *testing.B, h kernel.Heads, n, depth int, alone bool) {
	each, sequences := blocksOf(depth+n), 1
	if alone {
		each, sequences = blocksOf(depth), n
	}
	rows, tables := g.room(uint64(8*n)), make([]uint32, each*sequences)
	for i := range n {
		view[kernel.Row](rows.Bytes)[i] = kernel.Row{Position: uint32(depth + i)}
		if alone {
			view[kernel.Row](rows.Bytes)[i] = kernel.Row{Position: uint32(depth), Table: uint32(i * each)}
		}
	}
	for i := range tables {
		tables[i] = uint32(len(tables) - 1 - i)
	}
	width, stride := h.Query*h.Features, (h.Query+2*h.KV)*h.Features
	a := kernel.Attention{X: g.local(uint64(4 * stride * n)).Address, Y: g.local(uint64(4 * width * n)).Address,
		Keys: g.local(h.KeyBytes(len(tables))).Address, Values: g.local(h.ValueBytes(len(tables))).Address,
		Parts: g.local(h.PartBytes(min(n, plan.AttentionRows))).Address, Tables: g.words(tables...).Address,
		Angles: g.local(uint64(4 * h.Dims * n)).Address, XStride: stride, YStride: width, Scale: 1e-3, Depth: depth + n - 1,
		Alone: alone}
	for _, way := range attendWays {
		many := way.together && (alone || !g.k.tiles(&h, &a))
		if many || way.any && alone || !way.any && !way.together && h.Format() != backend.KVF16.Format {
			continue
		}
		b.Run(fmt.Sprintf("%s/%dof%d/%d/rows%d/depth%d/%s", h.Format(), h.KV, h.Query, h.Features, n, depth, way.name),
			func(b *testing.B) {
				defer func(squares, many bool) { g.k.attendSquares, g.k.together = squares, many }(g.k.attendSquares, g.k.together)
				g.k.attendSquares, g.k.together = way.squares, way.together
				attend := g.k.Attend
				if way.any {
					attend = g.k.attendAny
				}
				for range b.N {
					us := g.times(5, 2, func(r *vk.Recording) {
						r.Stamp()
						for from := 0; from < n; from += plan.AttentionRows {
							a := a
							a.N, a.Rows = min(plan.AttentionRows, n-from), rows.Address+uint64(8*from)
							a.X, a.Y = a.X+uint64(4*stride*from), a.Y+uint64(4*width*from)
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
