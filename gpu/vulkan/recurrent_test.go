//go:build cgo && linux

package vulkan

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// spanned is three sequences of a step: one that begins, over several blocks, with three guessed tokens; one that goes
// on within a block with less rows than a convolution sees; one whose row begins a block. Their blocks are in no order.
func (g *gpu) spanned(values int) (of *kernel.Recurrent, states []float32, rows int) {
	tables := []uint32{5, 1, 7, 0, 6, 2}
	spans := []uint32{0, 150, 0, 0, 147, 150, 2, 62, 3, 2, 152, 1, 64, 4, 1, 0, 0, 0, 0, 0}
	before := randomRow(8*values, 4)
	state := g.floats(before)
	g.t.Cleanup(func() { copy(before, floats(state.Bytes)) })
	return &kernel.Recurrent{States: state.Address, Spans: g.words(spans...).Address, N: 4,
			Tables: g.words(tables...).Address},
		view[float32](state.Bytes), 153
}

// expected takes a step through what a state is: by values that rows leave after them.
func expected(before []float32, values int, row func(row int, state []float64)) []float64 {
	blocks := make([]float64, len(before))
	for i, v := range before {
		blocks[i] = float64(v)
	}
	at := func(b int) []float64 { return blocks[b*values:][:values] }
	go1 := func(first, rows, kept, position int, table []int) {
		state := make([]float64, values)
		if position > 0 {
			copy(state, at(table[(position-1)/64]))
		}
		for i := range rows {
			row(first+i, state)
			if i < kept {
				copy(at(table[(position+i)/64]), state)
			}
		}
	}
	go1(0, 150, 147, 0, []int{5, 1, 7})
	go1(150, 2, 2, 62, []int{0})
	go1(152, 1, 1, 64, []int{6, 2})
	return blocks
}

func nearly(t *testing.T, what string, want []float64, got []float32) {
	t.Helper()
	for i, w := range want {
		require.InDelta(t, w, got[i], 1e-4*(1+math.Abs(w)), "%s: value %d", what, i)
	}
}

// TestConv compares results and states with float64. Channels are no whole workgroups.
func TestConv(t *testing.T) {
	for _, size := range []int{2, 4} {
		const channels = 70
		g := open(t)
		of, states, rows := g.spanned((size - 1) * channels)
		x, w, bias := randomRow(rows*channels, 1), randomRow(channels*size, 2), randomRow(channels, 3)
		want := make([]float64, rows*channels)
		left := expected(states, (size-1)*channels, func(r int, state []float64) {
			for c := range channels {
				sum := float64(bias[c]) + float64(w[c*size+size-1])*float64(x[r*channels+c])
				for j := range size - 1 {
					sum += float64(w[c*size+j]) * state[j*channels+c]
				}
				want[r*channels+c] = sum
			}
			copy(state, state[channels:])
			for c := range channels {
				state[(size-2)*channels+c] = float64(x[r*channels+c])
			}
		})
		y := g.room(uint64(4 * rows * channels))
		g.run(func(r *vk.Recording) {
			require.NoError(t, g.k.Conv(r, &kernel.Conv{X: g.floats(x).Address, Y: y.Address, Weights: g.floats(w).Address,
				Bias: g.floats(bias).Address, Channels: channels, Size: size, XStride: channels, YStride: channels,
				Rows: rows, Of: *of}))
		})
		nearly(t, "results", want, floats(y.Bytes))
		nearly(t, "states", left, states)
	}
}

// TestScan compares results and states with float64, for keys that are no whole eights, values that are no whole
// workgroup, and δ from what is nearly nothing to what forgets everything.
func TestScan(t *testing.T) {
	const heads, groups, keys, values = 4, 2, 11, 20
	for _, c := range []struct{ delta, tiled, slow bool }{{}, {tiled: true}, {delta: true}, {delta: true, tiled: true},
		{slow: true}} {
		g := open(t)
		a := &ir.ScanArgs{Heads: heads, Groups: groups, KDim: keys, VDim: values, Tiled: c.tiled, Scale: 0.5}
		of, states, rows := g.spanned(heads * keys * values)
		var in [5][]float32
		widths := []int{groups * keys, groups * keys, heads * values, heads, heads}
		for i, w := range widths {
			in[i] = randomRow(rows*w, uint64(10+i))
			for j := range in[i] {
				in[i][j] *= 0.3 // so that nothing grows
			}
		}
		for j := range in[3] {
			in[3][j] = float32(j%29) - 20
			if c.slow {
				in[3][j] = float32(j%7) - 18
			}
		}
		if c.slow { // as large as it is multiplied by δ
			for j := range in[2] {
				in[2][j] *= 1e6
			}
		}
		decay, shift, skip := []float32{-0.1, -1, -8, -1e-3}, randomRow(heads, 20), randomRow(heads, 21)
		want := make([]float64, rows*heads*values)
		left := expected(states, heads*values*keys, func(r int, state []float64) {
			for h := range heads {
				scanned(a, c.delta, &in, widths, r, h, float64(decay[h]), float64(shift[h]), float64(skip[h]),
					state[h*values*keys:][:values*keys], want[(r*heads+h)*values:][:values])
			}
		})
		y := g.room(uint64(4 * rows * heads * values))
		s := kernel.Scan{Args: a, Delta: c.delta, Y: kernel.Floats{At: y.Address, Stride: heads * values},
			Decay: g.floats(decay).Address,
			Shift: g.floats(shift).Address, Skip: g.floats(skip).Address, Of: *of}
		for i, w := range widths {
			s.In[i] = kernel.Floats{At: g.floats(in[i]).Address, Stride: w}
		}
		g.run(func(r *vk.Recording) { require.NoError(t, g.k.Scan(r, &s)) })
		nearly(t, "results", want, floats(y.Bytes))
		nearly(t, "states", left, states)
	}
}

// scanned is one head of one row, as internal/ir says; its state is [value][key].
func scanned(a *ir.ScanArgs, delta bool, in *[5][]float32, widths []int, r, h int, decay, shift, skip float64,
	state, y []float64) {
	at := func(i, n int) float64 { return float64(in[i][r*widths[i]+n]) }
	d := at(3, h) + shift
	d = max(d, 0) + math.Log1p(math.Exp(-math.Abs(d)))
	keep := math.Exp(decay * d)
	for c := range y {
		column, v, known := state[c*a.KDim:][:a.KDim], at(2, h*a.VDim+c), 0.0
		for k := range column {
			column[k] *= keep
			known += column[k] * at(1, a.Group(h)*a.KDim+k)
		}
		add := d * v
		if delta {
			add = at(4, h) * (v - known)
		}
		sum := 0.0
		for k := range column {
			column[k] += add * at(1, a.Group(h)*a.KDim+k)
			sum += column[k] * at(0, a.Group(h)*a.KDim+k)
		}
		y[c] = float64(a.Scale)*sum + skip*v
	}
}
