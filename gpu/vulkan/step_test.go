//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/quant"
)

// stepShape is a dense model's.
type stepShape struct {
	typ                             quant.Type
	layers, width, ffn, vocabulary  int
	h                               kernel.Heads
	rows, depth                     int
	eps                             float32
	embedding, output               kernel.Matrix
	layer                           []stepLayer
	x, qkv, a, hidden, logits       uint64
	parts, rowsAt, tables, angles   uint64
	scratch, ids, best, normWeights uint64
	stamped                         []string // what each timestamp but the first follows
}

// stepLayer is a layer's weights and caches.
type stepLayer struct {
	qkv, o, gateUp, down kernel.Matrix
	keys, values         uint64
}

// eightB is the shape of an 8B model, one row a sequence.
func eightB(typ quant.Type, rows, depth int) *stepShape {
	return &stepShape{typ: typ, layers: 32, width: 4096, ffn: 14336, vocabulary: 49152,
		rows: rows, depth: depth, h: kernel.Heads{Query: 32, KV: 8, Features: 128, Dims: 128}, eps: 1e-5}
}

// shrink makes a shape that a CPU finishes: it shows that the benchmark runs.
func (s *stepShape) shrink(g *gpu) {
	if g.d.Facts.Kind == vk.CPU {
		s.layers, s.width, s.ffn, s.vocabulary, s.depth = 1, 512, 1024, 2048, min(s.depth, 512)
		s.h = kernel.Heads{Query: 4, KV: 2, Features: 128, Dims: 128}
	}
}

// prepare gives all of it memory of random bytes. What kernels read as addresses and positions is right.
func (s *stepShape) prepare(g *gpu) {
	matrix := func(rows, cols int, pair bool) kernel.Matrix {
		m, err := NewMatrix(s.typ, rows, cols, pair)
		require.NoError(g.t, err)
		m.Address = g.local(m.Bytes()).Address
		return m
	}
	s.embedding, s.output = matrix(s.vocabulary, s.width, false), matrix(s.vocabulary, s.width, false)
	blocks := (s.depth + 63) / 64
	heads := s.h.Query + 2*s.h.KV
	for range s.layers {
		cache := s.h.KeyBytes(blocks * s.rows)
		s.layer = append(s.layer, stepLayer{
			qkv: matrix(heads*s.h.Features, s.width, false), o: matrix(s.width, s.h.Query*s.h.Features, false),
			gateUp: matrix(s.ffn, s.width, true), down: matrix(s.width, s.ffn, false),
			keys: g.local(cache).Address, values: g.local(cache).Address})
	}
	room := func(values int) uint64 { return g.local(uint64(4 * values * s.rows)).Address }
	s.x, s.qkv, s.a = room(kernel.PaddedWidth(s.width)), room(heads*s.h.Features),
		room(kernel.PaddedWidth(s.h.Query*s.h.Features))
	s.hidden, s.logits, s.scratch = room(kernel.PaddedWidth(s.ffn)), room(s.vocabulary), room(kernel.PaddedWidth(s.width))
	s.parts, s.best = g.local(s.h.PartBytes(s.rows)).Address, g.local(kernel.ArgMaxScratch(s.rows)).Address
	s.normWeights = g.local(uint64(4 * s.width)).Address
	var rows []uint32
	var tables []uint32
	for r := range s.rows {
		rows = append(rows, uint32(s.depth-1), uint32(len(tables)))
		for b := range blocks {
			tables = append(tables, uint32(r*blocks+b))
		}
	}
	angles := make([]float32, s.rows*s.h.Dims)
	for i := range angles {
		angles[i] = float32(math.Sqrt(0.5))
	}
	s.rowsAt, s.tables, s.angles = g.stepwise(rows).Address, g.stepwise(tables).Address, g.stepwise(angles).Address
	s.ids = g.stepwise(make([]uint32, s.rows)).Address
}

// stepwise is memory that the host writes and kernels read.
func (g *gpu) stepwise(data any) *vk.Buffer {
	g.t.Helper()
	n := 0
	switch x := data.(type) {
	case []uint32:
		n = 4 * len(x)
	case []float32:
		n = 4 * len(x)
	}
	b, err := g.d.Allocate(vk.Stepwise, uint64(n))
	require.NoError(g.t, err)
	g.t.Cleanup(func() { g.d.Free(b) })
	switch x := data.(type) {
	case []uint32:
		copy(view[uint32](b.Bytes), x)
	case []float32:
		copy(view[float32](b.Bytes), x)
	}
	return b
}

// normed is a mat-vec of the normalised residual stream.
func (s *stepShape) normed(w *kernel.Matrix, y uint64, stride int, glue kernel.Glue) kernel.MatVec {
	return kernel.MatVec{W: w, Columns: s.rows, X: s.x, XStride: s.width, Gain: s.normWeights, Eps: s.eps, Y: y,
		YStride: stride,
		Glue:    glue}
}

// project is MatVec of normalised rows. The norm is part of it for one row, where shared memory has room and few
// workgroups would repeat it; else scratch takes the normalised rows first: QuantisedBytes each, or PaddedWidth
// float32. The bits are the same.
func (k *Kernels) project(r *vk.Recording, m kernel.MatVec, scratch uint64) error {
	const mostGroups = 512 // a norm of 4096 costs each of them a µs
	if m.Columns == 1 && m.W.RowTiles()/int(uint32(m.RowTilesAtOnce())) <= mostGroups && k.Fits(&m) {
		return k.MatVec(r, &m)
	}
	err := k.Norm(r, &kernel.Norm{X: m.X, Y: scratch, Gain: m.Gain, Width: m.W.Cols, XStride: m.XStride,
		Stride: kernel.PaddedWidth(m.W.Cols), Rows: m.Columns, Eps: m.Eps, Quantise: !m.W.Float})
	if err != nil {
		return err
	}
	r.Barrier()
	m.X, m.XStride, m.Gain = scratch, kernel.PaddedWidth(m.W.Cols), 0
	return k.MatVec(r, &m)
}

// record records the whole step: from ids to ids.
func (s *stepShape) record(g *gpu, r *vk.Recording, stamp bool) {
	s.stamped = nil
	check := func(name string, err error) {
		require.NoError(g.t, err)
		r.Barrier()
		if stamp {
			r.Stamp()
			s.stamped = append(s.stamped, name)
		}
	}
	float := formats[s.typ].float
	check("embed", g.k.Embed(r, &kernel.Embed{W: &s.embedding, IDs: s.ids, Drawn: s.ids, Y: s.x, YStride: s.width,
		Rows: s.rows}))
	heads := (s.h.Query + 2*s.h.KV) * s.h.Features
	for i := range s.layer {
		l := &s.layer[i]
		check("qkv", g.k.project(r, s.normed(&l.qkv, s.qkv, heads, kernel.Store), s.scratch))
		check("attention", g.k.Attend(r, &s.h, &kernel.Attention{X: s.qkv, Y: s.a, Keys: l.keys, Values: l.values,
			Parts: s.parts,
			Rows:  s.rowsAt, Tables: s.tables, Angles: s.angles, XStride: heads, YStride: s.h.Query * s.h.Features,
			N: s.rows, Alone: true, Quantise: !float, Scale: float32(1 / math.Sqrt(float64(s.h.Features))),
			Depth: s.depth - 1}))
		check("o", g.k.MatVec(r, &kernel.MatVec{W: &l.o, Columns: s.rows, X: s.a, XStride: s.h.Query * s.h.Features,
			Y: s.x, YStride: s.width, Residual: s.x}))
		glue := kernel.SwiGLUToInt8
		if float {
			glue = kernel.SwiGLU
		}
		check("gate, up", g.k.project(r, s.normed(&l.gateUp, s.hidden, kernel.PaddedWidth(s.ffn), glue), s.scratch))
		check("down", g.k.MatVec(r, &kernel.MatVec{W: &l.down, Columns: s.rows, X: s.hidden,
			XStride: kernel.PaddedWidth(s.ffn), Y: s.x,
			YStride: s.width, Residual: s.x}))
	}
	check("head", g.k.project(r, s.normed(&s.output, s.logits, s.vocabulary, kernel.Store), s.scratch))
	check("arg-max", g.k.ArgMax(r, &kernel.ArgMax{X: s.logits, IDs: s.ids, Scratch: s.best, Width: s.vocabulary,
		Stride: s.vocabulary, Rows: s.rows}))
}

// BenchmarkStep is a whole decode step of an 8B shape.
func BenchmarkStep(b *testing.B) {
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q4_K, quant.Q8_0, quant.F16, quant.Q6_K} {
		for _, c := range [][2]int{{1, 512}, {1, 8192}, {4, 512}, {8, 512}} {
			b.Run(fmt.Sprintf("%s/rows%d/depth%d", typ, c[0], c[1]), func(b *testing.B) {
				g := open(b)
				s := eightB(typ, c[0], c[1])
				s.shrink(g)
				s.prepare(g)
				for range b.N {
					us := g.times(9, 2, func(r *vk.Recording) {
						r.Stamp()
						s.record(g, r, false)
						r.Stamp()
					})
					b.ReportMetric(us[0], "µs")
					b.ReportMetric(float64(s.rows)*1e6/us[0], "t/s")
				}
			})
		}
	}
}

// BenchmarkAttention is attention of one layer, with rotation, storing, merge and quantisation; layers in turn.
func BenchmarkAttention(b *testing.B) {
	for _, depth := range []int{512, 2048, 8192, 32768} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			g := open(b)
			s := eightB(quant.Q4_0, 1, depth)
			s.layers, s.ffn, s.vocabulary = max(1, min(32, int(g.benchBytes()/uint64(depth*4096)/2))), 256, 256
			s.prepare(g)
			for range b.N {
				us := g.times(9, 2, func(r *vk.Recording) {
					r.Stamp()
					for i := range s.layer {
						l := &s.layer[i]
						require.NoError(b, g.k.Attend(r, &s.h, &kernel.Attention{X: s.qkv, Y: s.a, Keys: l.keys, Values: l.values,
							Parts: s.parts, Rows: s.rowsAt, Tables: s.tables, Angles: s.angles, XStride: 6144, YStride: 4096,
							N: 1, Alone: true, Quantise: true, Scale: 0.088, Depth: depth - 1}))
						r.Barrier()
					}
					r.Stamp()
				})
				b.ReportMetric(us[0]/float64(len(s.layer)), "µs")
				b.ReportMetric(float64(depth*4096)/us[0]*float64(len(s.layer))/1e3, "GB/s")
			}
		})
	}
}

// BenchmarkParts is a decode step with a timestamp after each part: the sum of each kind.
func BenchmarkParts(b *testing.B) {
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.F16} {
		for _, rows := range []int{1, 4, 8} {
			b.Run(fmt.Sprintf("%s/rows%d", typ, rows), func(b *testing.B) {
				g := open(b)
				s := eightB(typ, rows, 512)
				s.shrink(g)
				s.prepare(g)
				for range b.N {
					us := g.times(9, 4+5*s.layers, func(r *vk.Recording) {
						r.Stamp()
						s.record(g, r, true)
					})
					sums := map[string]float64{}
					for i, name := range s.stamped {
						sums[name] += us[i]
					}
					total := 0.0
					for name, v := range sums {
						total += v
						if name != "embed" && name != "head" && name != "arg-max" {
							v /= float64(s.layers)
						}
						b.ReportMetric(v, "µs-"+strings.ReplaceAll(name, ", ", "-"))
					}
					b.ReportMetric(total, "µs")
				}
			})
		}
	}
}
