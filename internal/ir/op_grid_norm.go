package ir

import (
	"fmt"
	"math"
)

// gridNormOp describes GridNorm, which is elsewhere called group norm.
var gridNormOp = operation{
	name: "grid norm", inputs: [2]int{1, 1}, w: required, b: required, use: Vector, fits: fitsGridNorm,
	loop: (*Frame).gridNorm,
	args: func(n *Node) string { return fmt.Sprintf("eps=%g group=%d", n.Norm.Eps, n.Norm.Group) },
	cases: []Case{
		{"grid norm", func(b *Builder, x Value, n int) Value { return b.GridNorm(x, "n", n, 8, 1e-6) }},
		{"grid norm cells", func(b *Builder, x Value, n int) Value { return b.GridNorm(x, "n", n/4, 4, 1e-6) }},
	},
}

// GridNorm normalises each of so many groups of channels to mean 0 and variance 1 over all pixels of a picture, and
// multiplies by the weight and adds the bias of each channel. A row has width/channels pixels.
func (b *Builder) GridNorm(x Value, name string, channels, groups int, eps float32) Value {
	b.p.Whole = true
	return b.add(Node{
		Op: GridNorm, In: []Value{x}, W: b.vector(name+".weight", channels), B: b.vector(name+".bias", channels),
		Norm: NormArgs{Layer: true, Eps: eps, Group: channels / max(groups, 1)},
	}, b.Width(x))
}

func fitsGridNorm(p *Program, n *Node) error {
	channels, a := p.Weights[n.W].Cols, &n.Norm
	if a.Group <= 0 || channels%a.Group != 0 || p.Widths[n.Out]%channels != 0 {
		return fmt.Errorf("groups of %d do not tile %d channels, or these not %d features", a.Group, channels, p.Widths[n.Out])
	}
	if !finite(float64(a.Eps)) || a.Eps < 0 || !a.Layer {
		return fmt.Errorf("eps is %v", a.Eps)
	}
	if !p.Whole {
		return fmt.Errorf("it needs whole pictures")
	}
	for _, r := range []Ref{n.W, n.B} {
		if err := vector(p, r, channels); err != nil {
			return err
		}
	}
	return sameWidths(p, n)
}

func (f *Frame) gridNorm(n *Node) {
	channels, group := f.P.Weights[n.W].Cols, n.Norm.Group
	g, b := f.vector(n.W, channels, 1), f.vector(n.B, channels, 0)
	for _, span := range f.Spans {
		for from := 0; from < channels; from += group {
			var all []float64 // of the picture in this group
			f.eachOfGroup(n, &span, from, func(x, _ []float32) {
				for _, v := range x {
					all = append(all, float64(v))
				}
			})
			mean, scale := Moments(all, float64(n.Norm.Eps))
			f.eachOfGroup(n, &span, from, func(x, y []float32) {
				for i, v := range x {
					y[i] = float32((float64(v)-mean)*scale*float64(g[from+i]) + float64(b[from+i]))
				}
			})
		}
	}
}

// eachOfGroup visits the channels of a group, pixel by pixel: those of the input and of the result.
func (f *Frame) eachOfGroup(n *Node, span *Span, from int, visit func(x, y []float32)) {
	channels := f.P.Weights[n.W].Cols
	for r := range span.Rows {
		x, y := f.row(n.In[0], span.Row+r), f.row(n.Out, span.Row+r)
		for ; len(x) > 0; x, y = x[channels:], y[channels:] {
			visit(x[from:from+n.Norm.Group], y[from:from+n.Norm.Group])
		}
	}
}

// Moments are the mean of values, and what their distance from it is multiplied by for a variance of 1: 1/√(var+eps).
func Moments(x []float64, eps float64) (mean, scale float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	square := 0.0
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	return mean, 1 / math.Sqrt(square/float64(len(x))+eps)
}
