package blocks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// random is a program with random weights of order one.
func random(t require.TestingT, record func(b *ir.Builder), runs func(p *ir.Program) [][]int) *Network {
	b := ir.NewBuilder("test", func(string) bool { return false })
	record(b)
	p, err := b.Program(0)
	require.NoError(t, err)
	list := make([]ir.Tensor, len(p.Weights))
	for i := range p.Weights {
		list[i] = ir.Tensor{Name: p.Weights[i].Name, Type: quant.F32, Shape: p.Weights[i].Shape()}
	}
	bound, err := ir.Bind(p, list)
	require.NoError(t, err)
	x := &Network{Bound: bound, Runs: runs(p)}
	rng := rand.New(rand.NewPCG(1, 2))
	for r := range p.Weights {
		w := make([]float32, p.Weights[r].Rows*p.Weights[r].Cols)
		for i := range w {
			w[i] = float32(rng.NormFloat64() / 3)
		}
		data := make([]byte, 4*len(w))
		require.NoError(t, quant.Quantize(quant.F32, data, w))
		x.Weights = append(x.Weights, data)
	}
	return x
}

// painted records convolutions of all kinds, over several segments, some of which read what earlier ones than the last
// left; the middle one has a norm over the picture.
func painted(b *ir.Builder) {
	at := func(size, side, up, stride int) ir.Conv2DArgs {
		return ir.Conv2DArgs{Size: size, Side: side, Up: up, Stride: stride}
	}
	in := b.Input("in", 12, true)
	b.Block()
	first := b.Conv2D(in, "one", at(3, 2, 1, 1), 4)
	x := b.Leaky(b.Conv2D(first, "two", at(5, 2, 1, 1), 4), 0.2)
	b.Block()
	x = b.GridNorm(b.Conv2D(x, "down", at(3, 2, 1, 2), 8), "norm", 8, 2, 1e-6)
	b.Output("half", x)
	b.Block()
	x = b.Conv2D(b.Conv2D(x, "up", at(3, 1, 2, 1), 4), "three", at(3, 2, 1, 1), 4)
	b.Block()
	b.Output("out", b.Conv2D(b.Conv2D(b.Add(x, first), "up2", at(3, 2, 2, 1), 3), "four", at(1, 4, 1, 1), 3))
}

func each(p *ir.Program) (runs [][]int) {
	for s := range p.Segments {
		runs = append(runs, []int{s})
	}
	return runs
}

func some(n int) []float32 {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// TestStripes: whatever memory there is, and however segments are divided into runs, a picture has the bits of one
// step.
func TestStripes(t *testing.T) {
	processor, err := cpu.New(2, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	for _, d := range []backend.Device{ref.New(), processor} {
		rapid.Check(t, func(t *rapid.T) {
			grid := ir.Grid{Height: rapid.IntRange(1, 9).Draw(t, "height"), Width: rapid.IntRange(1, 5).Draw(t, "width")}
			runs := each
			if rapid.Bool().Draw(t, "in pairs") {
				runs = func(*ir.Program) [][]int { return [][]int{{0, 1}, {2, 3}} }
			}
			p := random(t, painted, runs)
			in := map[string][]float32{"in": some(12 * grid.Height * grid.Width)}
			want, err := p.Run(d, func(int) []ir.Grid { return []ir.Grid{grid} }, nil, in)
			require.NoError(t, err)
			o := Stripes{Grid: grid, Bytes: int64(rapid.IntRange(0, 12000).Draw(t, "bytes"))}
			last, all := 0, 0
			o.Done = func(part, parts int) {
				require.Equal(t, last+1, part)
				last, all = part, parts
			}
			got, err := p.Striped(context.Background(), d, o, in)
			require.NoError(t, err)
			require.Equal(t, last, all)
			for _, name := range []string{"half", "out"} {
				require.NotEmpty(t, want[name])
				require.True(t, slices.Equal(want[name], got[name]), "%s: other bits than those of one step", name)
			}
			require.NoError(t, p.Close())
		})
	}
}

// TestStripesAreBounded: a stripe is as high as memory has room for, and never lower than a line beside what it sees.
func TestStripesAreBounded(t *testing.T) {
	p := random(t, painted, each)
	grid := ir.Grid{Height: 100, Width: 10}
	const line = 4 * 10 * (16 + 16 + 16) // of the first segment: two convolutions and an activation
	for _, c := range []struct {
		bytes        int64
		lines, reach int
	}{{0, 100, 0}, {1, 1, 2}, {5 * line, 1, 2}, {6 * line, 2, 2}, {99 * line, 95, 2}, {100 * line, 100, 0}} {
		t.Run(fmt.Sprint(c.bytes), func(t *testing.T) {
			require.Equal(t, stripes{c.lines, c.reach, line}, p.stripes([]int{0}, &Stripes{Grid: grid, Bytes: c.bytes}))
		})
	}
	norm := p.stripes([]int{1}, &Stripes{Grid: grid, Bytes: 1})
	require.Equal(t, grid.Height, norm.lines, "a norm sees the whole picture")
	require.Equal(t, norm.line*100, p.Needs(Stripes{Grid: grid, Bytes: 1}))
}

func TestStripedErrors(t *testing.T) {
	p := random(t, painted, each)
	o := Stripes{Grid: ir.Grid{Height: 2, Width: 2}}
	_, err := p.Striped(context.Background(), ref.New(), o, map[string][]float32{"in": some(47)})
	require.ErrorContains(t, err, "an input of 47 numbers, want 48")
	ctx, cancel := context.WithCancel(context.Background())
	o.Done = func(part, _ int) {
		require.Equal(t, 1, part)
		cancel()
	}
	_, err = p.Striped(ctx, ref.New(), o, map[string][]float32{"in": some(48)})
	require.ErrorIs(t, err, context.Canceled)
}
