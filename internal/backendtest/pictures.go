package backendtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// block records two convolutions with a norm and an activation between them. Its input and first output are pictures;
// the value between the convolutions is an output, too.
func block(b *ir.Builder) {
	x := b.Input("picture", 4, true)
	b.Block()
	x = b.Act(ir.SiLU, b.LayerNorm(b.Convolution(x, "conv_in", 3, 32), "norm", 1e-5))
	b.Output("features", x)
	b.Block()
	b.Output("painted", b.Convolution(x, "conv_out", 3, 4))
}

// tower records attention among the patches of a picture, whose heads turn by lines in one half and by columns in the
// other.
func tower(b *ir.Builder) {
	const width, heads, dim = 64, 4, 16
	rope := ir.RoPEArgs{HeadDim: dim, Dims: dim, Freq: []float64{1, 0.3, 0.1, 0.03, 1, 0.3, 0.1, 0.03}, Mscale: 1,
		Axes: []uint8{1, 1, 1, 1, 2, 2, 2, 2}}
	a := ir.AttendArgs{Heads: heads, KVHeads: heads, KDim: dim, VDim: dim, Scale: 0.25, Both: true}
	patches := b.Input("patches", 24, true)
	b.Block()
	x := b.Linear(patches, "patch", width)
	b.Block()
	n := b.RMSNorm(x, "norm", 1e-5)
	q, k := b.Rope(b.Linear(n, "q", width), rope, ""), b.Rope(b.Linear(n, "k", width), rope, "")
	x = b.Add(x, b.Linear(b.Attend(q, k, b.Linear(n, "v", width), a), "o", width))
	b.Block()
	b.Output("seen", b.Add(b.Linear(patches, "skip", width), x)) // an input that two blocks read
}

// mosaic records convolutions whose pixels are at most four times as many as rows, at least as many, and in between,
// and a norm over whole pictures.
func mosaic(b *ir.Builder) {
	x := b.Input("picture", 4*4*3, true)
	b.Block()
	x = b.Conv2D(x, "conv_in", ir.Conv2DArgs{Size: 3, Side: 4, Up: 1, Stride: 1}, 8)
	x = b.Conv2D(b.Act(ir.SiLU, b.GridNorm(x, "norm", 8, 2, 1e-6)), "down", ir.Conv2DArgs{Size: 3, Side: 4, Up: 1, Stride: 2}, 20)
	b.Output("features", x)
	b.Block()
	x = b.Conv2D(x, "up", ir.Conv2DArgs{Size: 3, Side: 2, Up: 2, Stride: 1}, 6)
	b.Output("painted", b.Conv2D(b.Leaky(x, 0.2), "conv_out", ir.Conv2DArgs{Size: 1, Side: 4, Up: 1, Stride: 1}, 3))
}

// picture is one of a step, with a width and a height.
type picture struct {
	ir.Grid
	rows []float32
}

func pictureOf(seed uint64, height, width, features int) picture {
	p := picture{Grid: ir.Grid{Height: height, Width: width}}
	rng := rand.New(rand.NewPCG(seed, 6))
	for range height * width * features {
		p.rows = append(p.rows, float32(rng.NormFloat64()))
	}
	return p
}

// Pictures compares programs that are no text with the oracle: rows of floats on a grid in, rows of floats out by name.
// A picture beside others must have the bits that it has alone.
func Pictures(t *testing.T, d, oracle backend.Device) {
	for _, c := range []struct {
		name   string
		record func(b *ir.Builder)
		in     int
		out    []string
	}{
		{"block", block, 4, []string{"features", "painted"}}, {"tower", tower, 24, []string{"seen"}},
		{"mosaic", mosaic, 48, []string{"features", "painted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := ir.NewBuilder(c.name, hasNone)
			c.record(b)
			p, err := b.Program(0)
			require.NoError(t, err)
			require.Equal(t, ir.Blocks, p.Form())
			m, err := made(judge.Random(p, 5, judge.All(quant.F32)))
			require.NoError(t, err)
			one, two := pictureOf(1, 5, 7, c.in), pictureOf(2, 3, 4, c.in)
			got, want := m.painted(t, d, one, two), m.painted(t, oracle, one, two)
			alone := m.painted(t, d, one)
			require.Len(t, got, len(c.out))
			for _, name := range c.out {
				v, ok := p.Output(name)
				require.True(t, ok)
				width := p.Widths[v]
				require.Len(t, want[name], (5*7+3*4)*width)
				for i := range want[name] {
					near(t, got[name], want[name], i, width, 1e-4)
				}
				sameBits(t, "beside another", width, got[name][:len(alone[name])], alone[name])
			}
		})
	}
}

// painted runs pictures as one step, and returns the outputs. Before it runs a step with the pictures turned, so that
// no place of a row that a device remembers is right by chance.
func (m *Model) painted(t *testing.T, d backend.Device, pictures ...picture) map[string][]float32 {
	t.Helper()
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, len(pictures)), MaxRows: 64}}
	l := load(t, d, m, c)
	for i := range pictures {
		pictures[i].Height, pictures[i].Width = pictures[i].Width, pictures[i].Height
	}
	l.paint(t, pictures)
	for i := range pictures {
		pictures[i].Height, pictures[i].Width = pictures[i].Width, pictures[i].Height
	}
	return l.paint(t, pictures)
}

func (l *loaded) paint(t *testing.T, pictures []picture) map[string][]float32 {
	t.Helper()
	s := l.Steps()[0]
	s.Tokens, s.Spans, s.Wanted = nil, nil, nil
	var rows []float32
	for i, p := range pictures {
		span := backend.Span{Row: s.Rows(), Rows: p.Height * p.Width, Tables: Tables(l.m.Program, []int32{int32(i)}),
			Grid: p.Grid}
		for r := range span.Rows {
			span.Places = append(span.Places, ir.Place{0, int32(r / p.Width), int32(r % p.Width)})
		}
		s.Spans, rows = append(s.Spans, span), append(rows, p.rows...)
	}
	return l.handed(t, s, map[ir.Value][]float32{l.m.Inputs[0].Value: rows})
}

// handed runs a step segment by segment: it sets inputs just before a segment reads them, and reads outputs just after
// they are computed.
func (l *loaded) handed(t *testing.T, s *backend.Step, inputs map[ir.Value][]float32) map[string][]float32 {
	t.Helper()
	got := map[string][]float32{}
	for i := range l.m.Segments {
		for _, v := range l.m.Only([]int{i}).Taken() {
			if rows := inputs[v]; rows != nil {
				require.NoError(t, l.In(v, s, rows))
				delete(inputs, v)
			}
		}
		require.NoError(t, backend.Enqueue(l, i, s))
		for _, out := range l.m.Outputs {
			if slices.Contains(l.m.Handed(i), out.Value) {
				rows := make([]float32, s.Height(l.m.Program, out.Value)*l.m.Widths[out.Value])
				require.NoError(t, l.Out(out.Value, s, rows))
				got[out.Name] = rows
			}
		}
	}
	require.NoError(t, finish(l.Model, s))
	return got
}
