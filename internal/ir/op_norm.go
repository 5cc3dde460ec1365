package ir

import (
	"fmt"
	"math"
)

// NormArgs configures Norm. The input's width is a multiple of Group; each group of features is
// normalised on its own with the same g (of Group values) — a per-head norm has Group = head size.
// If g has the whole width while Group is smaller, it is applied by feature.
type NormArgs struct {
	Layer bool // subtract the mean (LayerNorm); else RMS
	Eps   float32
	Group int
}

// normOp describes Norm.
var normOp = operation{
	name: "norm", inputs: [2]int{1, 1}, w: optional, b: optional, use: Vector, fits: fitsNorm,
	loop: (*Frame).norm, byRow: true,
	args: func(n *Node) string {
		kind := "rms"
		if n.Norm.Layer {
			kind = "layer"
		}
		return fmt.Sprintf("%s eps=%g group=%d", kind, n.Norm.Eps, n.Norm.Group)
	},
	cases: []Case{
		{"norm rms", func(b *Builder, x Value, n int) Value { return b.RMSNorm(x, "n", 1e-5) }},
		{"norm heads", func(b *Builder, x Value, n int) Value { return b.HeadNorm(x, "n", n/4, 1e-6) }},
		{"norm groups", func(b *Builder, x Value, n int) Value { return b.GroupNorm(x, "n", 2, 1e-6) }},
		{"norm each head", func(b *Builder, x Value, n int) Value {
			return b.EachHeadLayerNorm(x, "n", n/4, 1e-6)
		}},
		{"norm head by head", func(b *Builder, x Value, n int) Value { return b.HeadLayerNorm(x, "n", n/8, 1e-4) }},
		{"norm layer", func(b *Builder, x Value, n int) Value { return b.LayerNorm(x, "n", 1e-5) }},
		{"norm layer bare", func(b *Builder, x Value, n int) Value { return b.BareLayerNorm(x, 1e-5) }},
	},
}

// RMSNorm normalises whole rows.
func (b *Builder) RMSNorm(x Value, name string, eps float32) Value {
	return b.norm(x, name, NormArgs{Eps: eps, Group: b.Width(x)})
}

// RMSNormBy is RMSNorm whose weight has this complete name.
func (b *Builder) RMSNormBy(x Value, name string, eps float32) Value {
	n := b.Width(x)
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: b.vector(name, n), B: NoRef, Norm: NormArgs{Eps: eps, Group: n}})
}

// HeadNorm normalises each head of head features on its own, all with the same weight.
func (b *Builder) HeadNorm(x Value, name string, head int, eps float32) Value {
	return b.norm(x, name, NormArgs{Eps: eps, Group: head})
}

// BareHeadNorm is HeadNorm without a weight.
func (b *Builder) BareHeadNorm(x Value, head int, eps float32) Value {
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: NoRef, B: NoRef, Norm: NormArgs{Eps: eps, Group: head}})
}

// EachHeadLayerNorm is LayerNorm of each head of head features. Each head has its own weights, and a bias if the file
// has one.
func (b *Builder) EachHeadLayerNorm(x Value, name string, head int, eps float32) Value {
	w := b.weight(name+".weight", b.Width(x)/head, head, Vector)
	a := NormArgs{Layer: true, Eps: eps, Group: head}
	bias := NoRef
	if b.Has(name + ".bias") {
		bias = b.weight(name+".bias", b.Width(x)/head, head, Vector)
	}
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: w, B: bias, Norm: a})
}

// HeadLayerNorm is LayerNorm of each head of head features. Weight and bias have a value for every feature of a row.
func (b *Builder) HeadLayerNorm(x Value, name string, head int, eps float32) Value {
	n := b.Width(x)
	return b.pointwise(Node{
		Op: Norm, In: []Value{x}, W: b.vector(name+".weight", n), B: b.vector(name+".bias", n),
		Norm: NormArgs{Layer: true, Eps: eps, Group: head},
	})
}

// GroupNorm is an RMS norm of each of so many groups of features; the weight has a value for every feature,
// [groups][features].
func (b *Builder) GroupNorm(x Value, name string, groups int, eps float32) Value {
	each := b.Width(x) / max(groups, 1)
	w := b.weight(name+".weight", groups, each, Vector)
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: w, B: NoRef, Norm: NormArgs{Eps: eps, Group: each}})
}

// LayerNorm normalises whole rows to mean 0 and variance 1, with weight and bias.
func (b *Builder) LayerNorm(x Value, name string, eps float32) Value {
	n := b.Width(x)
	return b.pointwise(Node{
		Op: Norm, In: []Value{x}, W: b.vector(name+".weight", n), B: b.vector(name+".bias", n),
		Norm: NormArgs{Layer: true, Eps: eps, Group: n},
	})
}

// LayerNormNoBias is LayerNorm with a weight alone.
func (b *Builder) LayerNormNoBias(x Value, name string, eps float32) Value {
	return b.norm(x, name, NormArgs{Layer: true, Eps: eps, Group: b.Width(x)})
}

// BareLayerNorm is LayerNorm without weight and bias.
func (b *Builder) BareLayerNorm(x Value, eps float32) Value {
	a := NormArgs{Layer: true, Eps: eps, Group: b.Width(x)}
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: NoRef, B: NoRef, Norm: a})
}

func (b *Builder) norm(x Value, name string, a NormArgs) Value {
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: b.vector(name+".weight", a.Group), B: NoRef, Norm: a})
}

// L2Norm is x/√(Σx²+ε) of each head, computed as an RMS norm with ε/n, divided by √n.
func (b *Builder) L2Norm(x Value, head int, eps float32) Value {
	n := float64(head)
	return b.Scale(b.BareHeadNorm(x, head, float32(float64(eps)/n)), float32(1/math.Sqrt(n)))
}

func fitsNorm(p *Program, n *Node) error {
	width, a := p.Widths[n.In[0]], &n.Norm
	if a.Group <= 0 || width%a.Group != 0 {
		return fmt.Errorf("groups of %d features do not tile %d", a.Group, width)
	}
	if !finite(float64(a.Eps)) || a.Eps < 0 {
		return fmt.Errorf("eps is %v", a.Eps)
	}
	for _, r := range []Ref{n.W, n.B} {
		if r != NoRef && p.Weights[r].Rows*p.Weights[r].Cols == width {
			continue // applied by feature
		}
		if err := vector(p, r, a.Group); err != nil {
			return err
		}
	}
	return sameWidths(p, n)
}

func (f *Frame) norm(n *Node) {
	width, group := f.P.Widths[n.Out], n.Norm.Group
	g, b := f.normVector(n.W, width, group, 1), f.normVector(n.B, width, group, 0)
	for r := range f.height(n.Out) {
		x, y := f.row(n.In[0], r), f.row(n.Out, r)
		for from := 0; from < width; from += group {
			to := from + group
			n.Norm.Apply(y[from:to], x[from:to], g[from:to], b[from:to])
		}
	}
}

// Apply normalises one group of features. y may be x; g and b may be nil: ones, and zeros.
func (a *NormArgs) Apply(y, x, g, b []float32) {
	mean, square := 0.0, 0.0
	if a.Layer {
		for _, v := range x {
			mean += float64(v)
		}
		mean /= float64(len(x))
	}
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	scale := 1 / math.Sqrt(square/float64(len(x))+float64(a.Eps))
	for i, v := range x {
		gain, bias := 1.0, 0.0
		if g != nil {
			gain = float64(g[i])
		}
		if b != nil {
			bias = float64(b[i])
		}
		y[i] = float32((float64(v)-mean)*scale*gain + bias)
	}
}

// normVector is a norm's weight or bias with a value for every feature: one of a group's size is repeated for each
// group.
func (f *Frame) normVector(r Ref, width, group int, otherwise float32) []float32 {
	one := f.vector(NoRef, group, otherwise)
	if r != NoRef {
		one = f.table(r)
	}
	v := make([]float32, 0, width)
	for len(v) < width {
		v = append(v, one...)
	}
	return v
}
