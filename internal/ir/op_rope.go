package ir

import (
	"cmp"
	"fmt"
	"math"
)

// RoPEArgs configures RoPE of a value holding Heads heads of HeadDim features, of which the first Dims rotate.
// Feature pair i of a head is (2i, 2i+1) when Interleaved, else (i, i+Dims/2), and turns by
// position·Freq[i]/factor[i] radians; cos and sin are multiplied by Mscale.
// All scalings (linear, YaRN, Llama 3) are already folded into Freq and Mscale by the architecture.
type RoPEArgs struct {
	Heads, HeadDim, Dims int
	Interleaved          bool
	Freq                 []float64 // Dims/2 values, radians per position
	Mscale               float32
	Divisors             int     // that W has, of which the first count; 0: as many as pairs
	Shift                int     // added to positions
	Axes                 []uint8 // by pair: the axis of a row's Place that turns it; nil: the first axis turns all
}

// Angle is how far pair i of a row at a place turns, before divisors.
func (a *RoPEArgs) Angle(i int, at Place) float64 {
	axis := uint8(0)
	if a.Axes != nil {
		axis = a.Axes[i]
	}
	return float64(int(at[axis])+a.Shift) * a.Freq[i]
}

// String shows the first and last frequency; the others lie between them.
func (a *RoPEArgs) String() string {
	pairs := "halves"
	if a.Interleaved {
		pairs = "neighbours"
	}
	first, last := 0.0, 0.0
	if n := len(a.Freq); n > 0 {
		first, last = a.Freq[0], a.Freq[n-1]
	}
	s := fmt.Sprintf("heads=%d dims=%d/%d %s freq=%.6g..%.6g mscale=%g",
		a.Heads, a.Dims, a.HeadDim, pairs, first, last, a.Mscale)
	if a.Shift != 0 {
		s += fmt.Sprintf(" shift=%d", a.Shift)
	}
	if a.Axes != nil {
		s += fmt.Sprintf(" axes=%d", a.Axes)
	}
	return s
}

// ropeOp describes RoPE.
var ropeOp = operation{
	name: "rope", inputs: [2]int{1, 1}, w: optional, b: none, use: Vector, fits: fitsRoPE,
	loop: (*Frame).rope, byRow: true,
	args: func(n *Node) string { return n.RoPE.String() },
	cases: []Case{
		{"rope halves", func(b *Builder, x Value, n int) Value { return CaseRope(b, x, 32, 32, false, "") }},
		{"rope neighbours", func(b *Builder, x Value, n int) Value { return CaseRope(b, x, 16, 16, true, "") }},
		{"rope partial", func(b *Builder, x Value, n int) Value { return CaseRope(b, x, 64, 24, false, "") }},
		{"rope divisors", func(b *Builder, x Value, n int) Value { return CaseRope(b, x, 32, 32, true, "f") }},
		{"rope shifted", func(b *Builder, x Value, n int) Value {
			return b.Rope(x, RoPEArgs{HeadDim: 32, Dims: 8, Freq: caseFreqs(8), Mscale: 1, Shift: -3}, "")
		}},
		{"rope first divisors", func(b *Builder, x Value, n int) Value {
			return b.Rope(x, RoPEArgs{HeadDim: 32, Dims: 8, Freq: caseFreqs(8), Mscale: 1, Divisors: 16}, "f")
		}},
	},
}

// Rope rotates all heads of x. a.Heads is derived from the width of x. factors is the full name of a tensor
// with divisors of the frequencies, or empty.
func (b *Builder) Rope(x Value, a RoPEArgs, factors string) Value {
	n := Node{Op: RoPE, In: []Value{x}, W: NoRef, B: NoRef, RoPE: &a}
	if a.HeadDim > 0 {
		a.Heads = b.Width(x) / a.HeadDim
	}
	if factors != "" {
		n.W = b.intern(factors, 1, a.divisors(), Vector)
	}
	return b.add(n, b.Width(x))
}

// divisors is how many W has.
func (a *RoPEArgs) divisors() int { return cmp.Or(a.Divisors, a.Dims/2) }

func fitsRoPE(p *Program, n *Node) error {
	a := n.RoPE
	if a.Heads <= 0 || a.HeadDim <= 0 || a.Heads*a.HeadDim != p.Widths[n.In[0]] {
		return fmt.Errorf("%d heads of %d do not make %d features", a.Heads, a.HeadDim, p.Widths[n.In[0]])
	}
	if a.Dims <= 0 || a.Dims%2 != 0 || a.Dims > a.HeadDim {
		return fmt.Errorf("%d features rotate, want an even number of at most %d", a.Dims, a.HeadDim)
	}
	if len(a.Freq) != a.Dims/2 {
		return fmt.Errorf("%d frequencies for %d pairs", len(a.Freq), a.Dims/2)
	}
	if a.Axes != nil && len(a.Axes) != len(a.Freq) {
		return fmt.Errorf("axes of %d pairs, want %d", len(a.Axes), len(a.Freq))
	}
	for _, axis := range a.Axes {
		if int(axis) >= len(Place{}) {
			return fmt.Errorf("axis %d of %d", axis, len(Place{}))
		}
	}
	for _, f := range a.Freq {
		if !finite(f) {
			return fmt.Errorf("a frequency is %v", f)
		}
	}
	if !finite(float64(a.Mscale)) {
		return fmt.Errorf("mscale is %v", a.Mscale)
	}
	if a.divisors() < a.Dims/2 {
		return fmt.Errorf("%d divisors for %d pairs", a.divisors(), a.Dims/2)
	}
	if err := vector(p, n.W, a.divisors()); err != nil {
		return err
	}
	return sameWidths(p, n)
}

func (f *Frame) rope(n *Node) {
	a := n.RoPE
	divisors := f.vector(n.W, a.divisors(), 1)
	for _, span := range f.Spans {
		for i := range span.Rows {
			x, y := f.row(n.In[0], span.Row+i), f.row(n.Out, span.Row+i)
			copy(y, x)
			for h := range a.Heads {
				turn(y[h*a.HeadDim:], x[h*a.HeadDim:], a, divisors, span.Place(i))
			}
		}
	}
}

// turn rotates the pairs of one head at a position.
func turn(y, x []float32, a *RoPEArgs, divisors []float32, at Place) {
	for i := range a.Freq {
		first, second := i, i+a.Dims/2
		if a.Interleaved {
			first, second = 2*i, 2*i+1
		}
		sin, cos := math.Sincos(a.Angle(i, at) / float64(divisors[i]))
		sin *= float64(a.Mscale)
		cos *= float64(a.Mscale)
		p, q := float64(x[first]), float64(x[second])
		y[first] = float32(p*cos - q*sin)
		y[second] = float32(p*sin + q*cos)
	}
}

// caseFreqs are RoPE's frequencies at base 10000.
func caseFreqs(dims int) []float64 {
	f := make([]float64, dims/2)
	for i := range f {
		f[i] = math.Pow(10000, -2*float64(i)/float64(dims))
	}
	return f
}

func CaseRope(b *Builder, x Value, head, dims int, neighbours bool, factors string) Value {
	return b.Rope(x, RoPEArgs{
		HeadDim: head, Dims: dims, Interleaved: neighbours, Freq: caseFreqs(dims), Mscale: 1.25,
	}, factors)
}
