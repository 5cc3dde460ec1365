//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// activated is an activation in float64, as cpu/ref has it.
func activated(a ir.Act, x float64) float64 {
	switch a {
	case ir.SiLU:
		return x / (1 + math.Exp(-x))
	case ir.GELU:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case ir.GELUErf:
		return 0.5 * x * math.Erfc(-x/math.Sqrt2)
	case ir.ReLU2:
		return math.Max(x, 0) * math.Max(x, 0)
	}
	return 1 / (1 + math.Exp(-x))
}

func gatedTwin(a ir.Act, x, up float64) float64 {
	if a == ir.Clamped {
		x = math.Min(x, 7)
		return x / (1 + math.Exp(-1.702*x)) * (math.Max(math.Min(up, 7), -7) + 1)
	}
	return activated(a, x) * up
}

// formula is Each in float64.
func formula(e *kernel.Each, a, b float64) float64 {
	switch e.Formula {
	case kernel.Sum:
		return a + b
	case kernel.Product:
		return a * b
	case kernel.Scaled:
		return float64(e.Factor) * a
	case kernel.SoftCap:
		return float64(e.Factor) * math.Tanh(a/float64(e.Factor))
	case kernel.Activate:
		return activated(e.Act, a)
	case kernel.Gate:
		return gatedTwin(e.Act, a, b)
	}
	return a
}

// TestEach tries all formulas, on values from far below zero to far above.
func TestEach(t *testing.T) {
	g := open(t)
	all := []kernel.Each{{Formula: kernel.Copy}, {Formula: kernel.Sum}, {Formula: kernel.Product},
		{Formula: kernel.Product, BWidth: 1},
		{Formula: kernel.Scaled, Factor: 0.3}, {Formula: kernel.SoftCap, Factor: 30}, {Formula: kernel.SoftCap, Factor: 0.5}}
	for a := ir.SiLU; a <= ir.Clamped; a++ {
		if a != ir.Clamped {
			all = append(all, kernel.Each{Formula: kernel.Activate, Act: a})
		}
		all = append(all, kernel.Each{Formula: kernel.Gate, Act: a})
	}
	const width, filled, rows, stride = 301, 512, 4, 520
	a, b := randomRow(stride*rows, 1), randomRow(stride*rows, 2)
	for i := range width {
		a[i] = float32(i-150) / 20 // and where tanh and erf change their formulas
		a[stride+i] = float32(i-150) * 2
		a[2*stride+i] = float32(i-150) * 1e-4
	}
	for _, e := range all {
		t.Run(fmt.Sprint(e.Formula, e.Act, e.BWidth, e.Factor), func(t *testing.T) {
			g := g.with(t)
			y := g.floats(slices.Repeat([]float32{99}, stride*rows))
			e.A, e.B, e.Y = g.floats(a).Address, g.floats(b).Address, y.Address
			e.AStride, e.BStride, e.YStride = stride, stride, stride
			e.Width, e.Filled, e.Rows, e.Count = width, filled, rows, g.words(rows-1).Address
			g.run(func(r *vk.Recording) { require.NoError(t, g.k.Each(r, &e)) })
			got := floats(y.Bytes)
			for r := range rows {
				for i := range stride {
					want := 99.0
					if r < rows-1 && i < filled {
						want = 0
					}
					if r < rows-1 && i < width {
						j := i
						if e.BWidth == 1 {
							j = 0
						}
						want = formula(&e, float64(a[r*stride+i]), float64(b[r*stride+j]))
					}
					// Devices may compute exp(x) to 3 + 2|x| units of the last place.
					near := 1e-11 + 1e-6*(1+math.Abs(float64(a[r*stride+i])))*math.Abs(want)
					require.InDelta(t, want, got[r*stride+i], near, "row %d, value %d of %v", r, i, a[r*stride+i])
				}
			}
		})
	}
}

// TestEachRows takes rows by number, and parts of rows, and works in place.
func TestEachRows(t *testing.T) {
	g := open(t)
	x := randomRow(7*40, 1)
	y, z := g.room(4*3*40), g.floats(x)
	g.run(func(r *vk.Recording) {
		from := g.floats(x).Address
		require.NoError(t, g.k.Each(r, &kernel.Each{Formula: kernel.Copy, A: from + 4*5, Y: y.Address, AStride: 40,
			YStride: 40,
			Numbers: g.words(6, 0, 3).Address, Width: 33, Rows: 3}))
		require.NoError(t, g.k.Each(r, &kernel.Each{Formula: kernel.Sum, A: z.Address, B: z.Address, Y: z.Address,
			Width: 7 * 40, Rows: 1}))
		for _, e := range []kernel.Each{{Formula: kernel.Gate}, {Formula: kernel.Activate, Act: ir.Clamped},
			{Formula: kernel.Gate + 1}} {
			require.ErrorContains(t, g.k.Each(r, &e), "is none")
		}
	})
	for i, v := range floats(z.Bytes) {
		require.Equal(t, 2*x[i], v)
	}
	for j, from := range []int{6, 0, 3} {
		require.Equal(t, x[from*40+5:][:33], floats(y.Bytes)[j*40:][:33])
		require.Equal(t, make([]float32, 7), floats(y.Bytes)[j*40+33:][:7])
	}
}

func TestGroupNorm(t *testing.T) {
	g := open(t)
	for _, c := range []kernel.GroupNorm{
		{Width: 300, Group: 300}, {Width: 300, Group: 300, Layer: true}, {Width: 12, Group: 1}, {Width: 384, Group: 96},
		{Width: 384, Group: 128, GainByRow: true}, {Width: 70, Group: 35, Layer: true, BiasByRow: true},
		{Width: 2500, Group: 2500, Layer: true}, {Width: 4096, Group: 4096},
	} {
		const rows = 3
		for _, with := range []int{0, 1, 3} { // weight, bias
			stride := c.Width + 5
			x, gain, bias := randomRow(rows*stride, 1), randomRow(c.Width, 2), randomRow(c.Width, 3)
			for i := range c.Width {
				x[i] += 50 // a mean far from 0
			}
			y := g.floats(x)
			n := c
			n.X, n.Y, n.XStride, n.YStride, n.Rows, n.Eps = y.Address, y.Address, stride, stride, rows, 1e-5
			n.Count = g.words(rows - 1).Address
			if with&1 != 0 {
				n.Gain = g.floats(gain).Address
			}
			if with&2 != 0 {
				n.Bias = g.floats(bias).Address
			}
			g.run(func(r *vk.Recording) { require.NoError(t, g.k.GroupNorm(r, &n)) })
			got := floats(y.Bytes)
			for r := range rows {
				want := x[r*stride:][:c.Width]
				if r < rows-1 {
					want = normTwin(&n, want, gain, bias)
				}
				for i, v := range want {
					require.InDelta(t, v, got[r*stride+i], 3e-5*(1+math.Abs(float64(v))), "%+v, row %d, value %d", c, r, i)
				}
				require.Equal(t, x[r*stride+c.Width:][:5], got[r*stride+c.Width:][:5])
			}
		}
	}
	require.ErrorContains(t, g.k.GroupNorm(nil, &kernel.GroupNorm{Width: 10, Group: 3}), "10 features by groups of 3")
}

// normTwin is a row's norm in float64, as cpu/ref has it.
func normTwin(n *kernel.GroupNorm, x, gain, bias []float32) []float32 {
	y := make([]float32, len(x))
	for from := 0; from < len(x); from += n.Group {
		mean, square := 0.0, 0.0
		for _, v := range x[from:][:n.Group] {
			if n.Layer {
				mean += float64(v) / float64(n.Group)
			}
		}
		for _, v := range x[from:][:n.Group] {
			square += (float64(v) - mean) * (float64(v) - mean)
		}
		scale := 1 / math.Sqrt(square/float64(n.Group)+float64(n.Eps))
		at := func(by bool, i int) int {
			if by {
				return from + i
			}
			return i
		}
		for i := range n.Group {
			v := (float64(x[from+i]) - mean) * scale
			if n.Gain != 0 {
				v *= float64(gain[at(n.GainByRow, i)])
			}
			if n.Bias != 0 {
				v += float64(bias[at(n.BiasByRow, i)])
			}
			y[from+i] = float32(v)
		}
	}
	return y
}

// TestTurn rotates at positions up to 10⁶, with divisors and a factor.
func TestTurn(t *testing.T) {
	g := open(t)
	positions := []int{0, 1, 77, 131071, 1000000}
	for _, c := range []struct {
		heads, features, dims int
		interleaved           bool
	}{{3, 64, 64, false}, {2, 80, 32, false}, {1, 10, 6, true}, {5, 128, 128, true}, {2, 7, 0, false}} {
		args := &ir.RoPEArgs{Heads: c.heads, HeadDim: c.features, Dims: c.dims, Interleaved: c.interleaved, Mscale: 1.25}
		divisors := make([]float32, c.dims/2)
		for i := range divisors {
			args.Freq = append(args.Freq, math.Pow(500000, -2*float64(i)/float64(c.dims)))
			divisors[i] = 1 + float32(i%3)
		}
		width := c.heads * c.features
		x := randomRow(width*len(positions), 3)
		var angles []float32
		for _, p := range positions {
			angles = kernel.Angles(angles, args, divisors, ir.PlaceOf(nil, p, 0))
		}
		y := g.floats(x)
		g.run(func(r *vk.Recording) {
			require.NoError(t, g.k.Turn(r, &kernel.Turn{X: y.Address, Y: y.Address, Angles: g.floats(append(angles, 0)).Address,
				Heads: c.heads, Features: c.features, Dims: c.dims, Interleaved: c.interleaved, XStride: width, YStride: width,
				Rows: len(positions)}))
		})
		got := floats(y.Bytes)
		for r, p := range positions {
			for h := range c.heads {
				at := r*width + h*c.features
				want := slices.Clone(x[at:][:c.features])
				for i, freq := range args.Freq {
					first, second := i, i+c.dims/2
					if c.interleaved {
						first, second = 2*i, 2*i+1
					}
					sin, cos := math.Sincos(float64(p) * freq / float64(divisors[i]))
					a, b := float64(x[at+first])*1.25, float64(x[at+second])*1.25
					want[first], want[second] = float32(a*cos-b*sin), float32(a*sin+b*cos)
				}
				for i, v := range want {
					require.InDelta(t, v, got[at+i], 2e-6*(1+math.Abs(float64(v))), "%+v at %d, head %d, feature %d", c, p, h, i)
				}
			}
		}
	}
	require.ErrorContains(t, g.k.Turn(nil, &kernel.Turn{Features: 4, Dims: 6}), "6 of 4 features")
}

// TestAround compares with the rows that a grid says, of pictures beside one another, one of which is a line. Rows
// beyond the count stay as they are.
func TestAround(t *testing.T) {
	g := open(t)
	const width, rows, there, stride = 5, 32, 27, 7
	pictures := []ir.Span{{Row: 0, Rows: 12, Grid: ir.Grid{Height: 3, Width: 4}}, {Row: 12, Rows: 5},
		{Row: 17, Rows: 10, Grid: ir.Grid{Height: 5, Width: 2}}}
	var texts []uint32
	for _, p := range pictures {
		texts = append(texts, uint32(p.Row), uint32(p.Rows), 0, uint32(p.Grid.Height), uint32(p.Grid.Width))
	}
	texts = append(texts, make([]uint32, 5)...)
	x := randomRow(stride*rows, 3)
	for _, size := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			g := g.with(t)
			out := size*size*width + 2
			in, y, told, count := g.floats(x), g.room(uint64(4*out*rows)), g.words(texts...), g.words(there)
			g.run(func(r *vk.Recording) {
				require.NoError(t, g.k.Around(r, &kernel.Around{X: in.Address, XStride: stride, Y: y.Address, YStride: out,
					Width: width, Size: size, Rows: rows, Texts: told.Address, Count: count.Address}))
			})
			want := make([]float32, out*rows)
			for _, p := range pictures {
				for r := range p.Rows {
					for i, at := range p.Grid.Around(p.Rows, r, size, nil) {
						if at >= 0 {
							copy(want[(p.Row+r)*out+i*width:][:width], x[(p.Row+at)*stride:])
						}
					}
				}
			}
			require.Equal(t, want, floats(y.Bytes))
		})
	}
}
