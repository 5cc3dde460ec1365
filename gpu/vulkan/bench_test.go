//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Benchmarks measure the device's own time, by timestamps: the median of a few runs of one recording. They are for
// real cards: make gpu-bench builds them, -test.benchtime 1x runs each once.

// local is device memory of random bytes, halves among them finite and small.
func (g *gpu) local(n uint64) *vk.Buffer {
	g.t.Helper()
	b, err := g.d.Allocate(vk.Local, n)
	require.NoError(g.t, err)
	g.t.Cleanup(func() { g.d.Free(b) })
	const piece = 8 << 20
	from := g.room(min(n, piece))
	rnd := rand.New(rand.NewPCG(1, 9))
	words := view[uint64](from.Bytes[:len(from.Bytes)/8*8])
	for i := range words {
		words[i] = rnd.Uint64() & 0xbfffbfffbfffbfff // halves below 2
	}
	g.run(func(r *vk.Recording) {
		for at := uint64(0); at < n; at += piece {
			r.Copy(b, at, from, 0, min(piece, n-at))
		}
	})
	return b
}

// times runs a recording with timestamps so often, and returns the medians of the times between them in µs. Before, it
// runs for a while: a card that idled, as while a kernel was compiled, has a fifth of its clock.
func (g *gpu) times(runs, stamps int, record func(*vk.Recording)) []float64 {
	g.t.Helper()
	r, err := g.d.Record(stamps)
	require.NoError(g.t, err)
	defer r.Close()
	record(r)
	require.NoError(g.t, r.End())
	once := func() []float64 {
		r.ResetStamps()
		g.submit(r)
		at, err := r.Stamps()
		require.NoError(g.t, err)
		return at
	}
	for end := time.Now().Add(300 * time.Millisecond); g.d.Facts.Kind != vk.CPU && time.Now().Before(end); {
		once()
	}
	all := make([][]float64, stamps-1)
	for range runs {
		at := once()
		for j := range all {
			all[j] = append(all[j], (at[j+1]-at[j])/1e3)
		}
	}
	medians := make([]float64, len(all))
	for j := range all {
		slices.Sort(all[j])
		medians[j] = all[j][runs/2]
	}
	return medians
}

// benchBytes is more than caches hold; on a CPU what shows that the benchmark runs.
func (g *gpu) benchBytes() uint64 {
	if g.d.Facts.Kind == vk.CPU {
		return 64 << 20
	}
	return 2 << 30
}

// BenchmarkMatVec reads weights from slices of much memory in turn, with a barrier after each dispatch.
func BenchmarkMatVec(b *testing.B) {
	g := open(b)
	weights := g.local(g.benchBytes())
	x, y, gain := g.local(16<<20), g.local(16<<20), g.local(1<<20)
	for _, typ := range types {
		for _, shape := range [][2]int{{4096, 4096}, {14336, 4096}, {4096, 14336}, {128256, 4096}} {
			for _, c := range []struct{ columns, segment, tiles int }{
				{1, 0, 1}, {1, 2, 1}, {2, 0, 1}, {4, 0, 1}, {8, 0, 1}, {-1, 0, 1},
			} {
				m, err := NewMatrix(typ, shape[0], shape[1], false)
				require.NoError(b, err)
				v := kernel.MatVec{W: &m, Columns: c.columns, X: x.Address, XStride: shape[1], Y: y.Address, YStride: shape[0],
					Tiles: c.tiles}
				name := fmt.Sprint("columns", c.columns)
				if c.columns < 0 {
					v.Columns, v.Gain, name = 1, gain.Address, "norm"
				}
				if c.segment != 0 {
					m.Segment = c.segment
				}
				if !g.k.Fits(&v) || typ == quant.F16 && c.columns*c.tiles > 8 || m.KTiles()/m.Segment > 32 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%dx%d/%s/segment%d/tiles%d", typ, shape[0], shape[1], name, m.Segment, c.tiles),
					func(b *testing.B) { g.benchMatVec(b, &m, v, weights) })
			}
		}
	}
}

func (g *gpu) benchMatVec(b *testing.B, m *kernel.Matrix, v kernel.MatVec, weights *vk.Buffer) {
	slices := max(1, min(weights.Size/((m.Bytes()+255)/256*256), 24))
	for range b.N {
		us := g.times(7, 2, func(r *vk.Recording) {
			r.Stamp()
			for i := range slices {
				w := *m
				w.Address = weights.Address + i*((m.Bytes()+255)/256*256)
				v.W = &w
				require.NoError(b, g.k.MatVec(r, &v))
				r.Barrier()
			}
			r.Stamp()
		})
		each := us[0] / float64(slices)
		row, _ := m.Type.RowBytes(m.Cols)
		b.ReportMetric(each, "µs")
		b.ReportMetric(float64(row*m.Rows)/each/1e3, "GB/s")
	}
}

// BenchmarkMatMul multiplies 512 columns, by each way that the device has.
func BenchmarkMatMul(b *testing.B) {
	g := open(b)
	weights, x, y := g.local(256<<20), g.local(64<<20), g.local(64<<20)
	columns := 512
	shapes := [][2]int{{4096, 4096}, {14336, 4096}, {4096, 14336}}
	if g.d.Facts.Kind == vk.CPU {
		columns, shapes = 32, [][2]int{{256, 256}}
	}
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.Q3_K, quant.Q5_K} {
		for _, shape := range shapes {
			for name, choose := range g.mulPaths() {
				if name == "plain" {
					continue
				}
				b.Run(fmt.Sprintf("%s/%dx%d/%s", typ, shape[0], shape[1], name), func(b *testing.B) {
					choose()
					m, err := NewMatrix(typ, shape[0], shape[1], false)
					require.NoError(b, err)
					m.Address = weights.Address
					for range b.N {
						us := g.times(7, 2, func(r *vk.Recording) {
							r.Stamp()
							require.NoError(b, g.k.MatVec(r, &kernel.MatVec{W: &m, Columns: columns, X: x.Address, Y: y.Address,
								YStride: shape[0]}))
							r.Barrier()
							r.Stamp()
						})
						b.ReportMetric(us[0], "µs")
						b.ReportMetric(2*float64(shape[0]*shape[1]*columns)/us[0]/1e6, "TOP/s")
					}
				})
			}
		}
	}
}
