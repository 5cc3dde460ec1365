//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// local is memory of the card, all zeros, until the benchmark's end.
func (c *card) local(n uint64) uint64 {
	c.t.Helper()
	b, err := c.d.Allocate(driver.Local, (n+255)/256*256)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { c.d.Free(b) })
	c.record(0, func(r driver.Recording) { r.Fill(b, 0) })
	return b.Address
}

// held is the same as some memory of the host, in memory of the card.
func (c *card) held(from *driver.Buffer) uint64 {
	c.t.Helper()
	b, err := c.d.Allocate(driver.Local, from.Size)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { c.d.Free(b) })
	c.record(0, func(r driver.Recording) { r.Copy(b, 0, from, 0, from.Size) })
	return b.Address
}

// BenchmarkAttend is attention as models record it: of a prompt's 512 rows behind so many positions, and of answers, a
// row of each of so many sequences with rotation and storing. GB/s are of what is cached, read once by each sequence.
func BenchmarkAttend(b *testing.B) {
	n, depths := 512, []int{0, 3584, 8192}
	deep, answers := []int{8192, 32768}, [][2]int{{1, 512}, {1, 2048}, {1, 8192}, {1, 32768}, {8, 512}, {8, 8192}}
	if open(b).d.facts.Software {
		n, depths, deep, answers = 17, []int{0}, []int{70}, [][2]int{{2, 70}}
	}
	for _, h := range []kernel.Heads{
		{Query: 32, KV: 8, Features: 128, Dims: 128}, {Query: 32, KV: 32, Features: 64, Dims: 64},
		{Query: 16, KV: 8, Features: 256, Dims: 256},
	} {
		for _, a := range answers {
			if h.Features == 128 || a[1] == 8192 {
				benchAttend(b, h, a[0], a[1], true, 1<<20)
			}
		}
		for _, depth := range depths {
			for _, memory := range []int{1 << 20, 160 << 10} { // two blocks on a multiprocessor, or one
				benchAttend(b, h, n, depth, false, memory)
			}
		}
		for _, h.Cache = range formats(b, "f32", "q8", "q5", "q4", "tq4", "tq3") {
			if h.Features == 128 {
				for _, depth := range deep {
					benchAttend(b, h, 1, depth, false, 1<<20)
				}
				benchAttend(b, h, 64, depths[len(depths)-1], false, 1<<20)
			}
		}
	}
}

// formats are those of caches with these names.
func formats(b *testing.B, names ...string) (all []backend.Format) {
	for _, name := range names {
		kv, err := backend.MixKV(name, name)
		require.NoError(b, err)
		all = append(all, kv.Format)
	}
	return all
}

// benchAttend is n rows of one sequence, or alone, each of its own, behind depth positions.
func benchAttend(b *testing.B, h kernel.Heads, n, depth int, alone bool, memory int) {
	name := fmt.Sprintf("%s/%dof%d/%d/rows%d/depth%d/%dK", h.Format(), h.KV, h.Query, h.Features, n, depth, memory>>10)
	b.Run(name, func(b *testing.B) {
		c := open(b)
		most := c.d.kernels.AttentionRows()
		c.d.c.Facts.Shared = min(c.d.c.Facts.Shared, memory)
		each, sequences := (depth+n)/backend.BlockSize+1, 1
		if alone {
			each, sequences = depth/backend.BlockSize+1, n
		}
		var rows []kernel.Row
		for i := range n {
			rows = append(rows, kernel.Row{Position: uint32(depth + i)})
			if alone {
				rows[i] = kernel.Row{Position: uint32(depth), Table: uint32(i * each)}
			}
		}
		tables := make([]uint32, each*sequences)
		for i := range tables {
			tables[i] = uint32(len(tables) - 1 - i)
		}
		width, stride := h.Query*h.Features, (h.Query+2*h.KV)*h.Features
		a := kernel.Attend{Heads: h, Attention: kernel.Attention{X: c.local(uint64(4 * stride * n)), XStride: stride,
			Y: c.local(uint64(4 * width * n)), YStride: width, Keys: c.local(h.KeyBytes(len(tables))),
			Values: c.local(h.ValueBytes(len(tables))), Parts: c.local(h.PartBytes(min(n, most))),
			Tables: c.held(of(c, tables...)), Angles: c.local(uint64(4 * (h.Dims + 1) * n)), Scale: 1e-3, Depth: depth + n - 1,
			Alone: alone && c.d.kernels.Fused(&h)}}
		at, recent := c.held(of(c, rows...)), h.Recent()
		if h.Format().Seals() {
			a.Recent.Keys = c.local(recent.KeyBytes(len(tables)))
			a.Recent.Values = c.local(recent.ValueBytes(len(tables)))
		}
		r := c.recorded(driver.Compute, func(r driver.Recording) {
			for from := 0; from < n; from += most {
				part := a
				part.N, part.Rows = min(most, n-from), at+uint64(8*from)
				part.Recent.Rows = part.Rows
				part.X, part.Y = a.X+uint64(4*stride*from), a.Y+uint64(4*width*from)
				require.NoError(b, c.d.kernels.Launch(r, &part))
				r.Barrier()
			}
		})
		if n > 8 {
			seen := float64(n) * (float64(depth) + float64(n+1)/2)
			c.timed(b, r, 4*float64(width)*seen/1000, "TFLOP/s")
			return
		}
		c.timed(b, r, float64(h.KeyBytes(len(tables))+h.ValueBytes(len(tables))), "GB/s")
	})
}

// BenchmarkDraw chooses tokens of rows of a large vocabulary: the likeliest one, and one of forty.
func BenchmarkDraw(b *testing.B) {
	width := 128256
	if open(b).d.facts.Software {
		width = 1000
	}
	for _, rows := range []int{1, 8} {
		for _, sampled := range []bool{false, true} {
			b.Run(fmt.Sprintf("rows%d/sampled=%t", rows, sampled), func(b *testing.B) {
				c := open(b)
				ids := c.room(4 * rows)
				draws := c.room(kernel.DrawBytes * rows)
				for r := range rows {
					kernel.PutDraw(draws.Bytes[r*kernel.DrawBytes:], &backend.Draw{Temp: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05})
				}
				x := c.held(of(c, some(1, rows*width, 8)...))
				scratch := c.local(kernel.SampleScratch(rows))
				r := c.recorded(driver.Compute, func(r driver.Recording) {
					var l kernel.Launch = &kernel.ArgMax{X: x, IDs: ids.Address, Scratch: scratch, Width: width,
						Stride: width, Rows: rows}
					if sampled {
						l = &kernel.Sample{Logits: x, Draws: draws.Address, IDs: ids.Address, Scratch: scratch, Width: width,
							Stride: width, Rows: rows}
					}
					require.NoError(b, c.d.kernels.Launch(r, l))
				})
				c.timed(b, r, float64(4*rows*width), "GB/s")
			})
		}
	}
}

// BenchmarkScan is a delta rule of 32 heads over the rows of a prompt, and of an answer. GB/s are of its inputs.
func BenchmarkScan(b *testing.B) {
	for _, rows := range []int{1, 512} {
		b.Run(fmt.Sprintf("rows%d", rows), func(b *testing.B) {
			c := open(b)
			if c.d.facts.Software {
				rows = min(rows, 4)
			}
			const heads, groups, features = 32, 16, 128
			a := &ir.ScanArgs{Heads: heads, Groups: groups, KDim: features, VDim: features, Scale: 1}
			s := &kernel.Scan{Args: a, Delta: true, Rows: rows, Decay: c.local(4 * heads), Shift: c.local(4 * heads),
				Y: kernel.Floats{At: c.local(uint64(4 * rows * heads * features)), Stride: heads * features}}
			bytes := 0
			for i, w := range []int{groups * features, groups * features, heads * features, heads, heads} {
				s.In[i] = kernel.Floats{At: c.local(uint64(4 * rows * w)), Stride: w}
				bytes += 4 * rows * w
			}
			blocks := rows/backend.BlockSize + 2
			s.Of = kernel.Recurrent{States: c.local(uint64(4 * blocks * heads * features * features)), N: 1,
				Spans:  of(c, kernel.Span{Rows: uint32(rows), Position: 1, Kept: uint32(rows)}).Address,
				Tables: c.local(uint64(4 * blocks))}
			r := c.recorded(driver.Compute, func(r driver.Recording) { require.NoError(b, c.d.kernels.Launch(r, s)) })
			c.timed(b, r, float64(bytes), "GB/s")
		})
	}
}
