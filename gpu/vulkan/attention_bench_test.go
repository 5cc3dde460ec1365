//go:build cgo && linux

package vulkan

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
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
		Parts: g.local(h.PartBytes(min(n, kernel.AttentionRows))).Address, Tables: g.words(tables...).Address,
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
						for from := 0; from < n; from += kernel.AttentionRows {
							a := a
							a.N, a.Rows = min(kernel.AttentionRows, n-from), rows.Address+uint64(8*from)
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

// BenchmarkAttendTypes is attention of an answer's row of an 8 B, as models record it, with each type of cache: the
// time of one layer with storing, and its part of f16's. It takes 10 s.
func BenchmarkAttendTypes(b *testing.B) {
	g := open(b)
	depths := []int{8190, 32766}
	if g.d.Facts.Kind == vk.CPU {
		depths = []int{190}
	}
	for _, depth := range depths {
		f16 := 0.0
		for _, name := range []string{"f16", "q8", "q5", "q4", "tq4", "tq3", "q8/tq2"} {
			k, v, _ := strings.Cut(name, "/")
			h := sealedHeads(b, kernel.Heads{Query: 32, KV: 8, Features: 128, Dims: 128}, k, cmp.Or(v, k))
			b.Run(fmt.Sprintf("%s/depth%d", name, depth), func(b *testing.B) {
				g, us := g.with(b), 0.0
				for range b.N {
					us = g.benchTypes(h, depth)
				}
				if name == "f16" {
					f16 = us
				}
				b.ReportMetric(us, "µs")
				b.ReportMetric(us/f16, "of-f16")
			})
		}
	}
}

// benchTypes is the microseconds that the attention of one row behind a number of positions takes.
func (g *gpu) benchTypes(h kernel.Heads, depth int) float64 {
	blocks, width := blocksOf(depth), (h.Query+2*h.KV)*h.Features
	tables := make([]uint32, blocks)
	for i := range tables {
		tables[i] = uint32(blocks - 1 - i)
	}
	rows := g.room(8)
	view[kernel.Row](rows.Bytes)[0] = kernel.Row{Position: uint32(depth)}
	a := kernel.Attention{X: g.local(uint64(4 * width)).Address, Y: g.local(uint64(4 * h.Query * h.Features)).Address,
		Keys: g.local(h.KeyBytes(blocks)).Address, Values: g.local(h.ValueBytes(blocks)).Address,
		Parts: g.local(h.PartBytes(1)).Address, Rows: rows.Address, Tables: g.words(tables...).Address,
		Angles: g.local(uint64(4 * h.Dims)).Address, XStride: width, YStride: h.Query * h.Features, N: 1, Scale: 1e-3,
		Depth: depth, Alone: g.k.Fused(&h)}
	store := kernel.Append{Heads: h, K: a.X, V: a.X, KStride: width, VStride: width, Keys: a.Keys, Values: a.Values,
		Rows: a.Rows, Tables: a.Tables, N: 1}
	if h.Format().Seals() {
		open := h.Recent()
		a.Recent = kernel.Recent{Keys: g.local(open.KeyBytes(blocks)).Address,
			Values: g.local(open.ValueBytes(blocks)).Address, Rows: a.Rows}
		store.Heads, store.Keys, store.Values = *open, a.Recent.Keys, a.Recent.Values
	}
	return g.times(20, 2, func(r *vk.Recording) {
		r.Stamp()
		if !a.Alone {
			require.NoError(g.t, g.k.Append(r, &store))
			r.Barrier()
		}
		if h.Format().Seals() { // once in 64 steps it has work, which is not measured
			require.NoError(g.t, g.k.Seal(r, &kernel.Seal{Heads: h, Keys: a.Keys, Values: a.Values, Recent: a.Recent,
				Rows: a.Rows, Tables: a.Tables, N: 1}))
			r.Barrier()
		}
		require.NoError(g.t, g.k.Attend(r, &h, &a))
		r.Barrier()
		r.Stamp()
	})[0]
}
