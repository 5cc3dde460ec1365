//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// node plans what a node computes, with what is part of it.
func (l *planner) node(n *ir.Node) error {
	switch n.Op {
	case ir.Embed:
		l.embed(n)
	case ir.Linear:
		l.multiply(n)
	case ir.Norm:
		l.groupNorm(n)
	case ir.RoPE:
		l.turn(n)
	case ir.Attend:
		return l.attention(n)
	case ir.GLU:
		if s := l.gated[n]; s != nil {
			l.pair(n, s)
			return nil
		}
		e := Each{Formula: Activate, Act: n.Act}
		if len(n.In) == 2 {
			e.Formula = Gate
		}
		l.each(n, e)
	case ir.Add:
		l.each(n, Each{Formula: Sum})
	case ir.Mul:
		l.each(n, Each{Formula: Product, BWidth: l.p.Widths[n.In[1]]})
	case ir.Scale:
		l.each(n, Each{Formula: Scaled, Factor: n.Factor})
	case ir.SoftCap:
		l.each(n, Each{Formula: SoftCap, Factor: n.Factor})
	case ir.Temper:
		l.temper(n)
	case ir.Affine:
		l.affine(n)
	case ir.Position, ir.TokenType:
		l.lookUp(n)
	case ir.HeadLinear:
		l.headLinear(n)
	case ir.HeadSlice, ir.HeadJoin:
		l.headParts(n)
	case ir.CausalConv:
		l.convolve(n)
	case ir.SSMScan, ir.DeltaRule:
		l.scan(n)
	case ir.Rows:
		l.gather(n)
	case ir.Route:
		l.route(n)
	case ir.Experts:
		l.mixture(n)
	default:
		return fmt.Errorf("%s has no kernel", n.Op)
	}
	return nil
}

func (l *planner) embed(n *ir.Node) {
	w, y := l.m.weights[n.W].lookup(), l.put(n)
	l.launch(launch{writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		return x.k.Embed(x.r, w, x.s.at(&x.s.ids), x.m.drawn.Address, x.at(y), stride(y.b), x.n)
	}})
}

// each plans what is computed value by value.
func (l *planner) each(n *ir.Node, e Each) {
	a := l.place(n.In[0])
	reads := []*live.Buffer{a.b}
	var b place
	over := n.In[:1]
	if len(n.In) == 2 {
		b = l.place(n.In[1])
		reads = append(reads, b.b)
		over = n.In
	}
	y := l.put(n, over...)
	e.Width = l.p.Widths[n.Out]
	l.launch(launch{reads: reads, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		e := e
		e.A, e.AStride, e.Y, e.YStride, e.Rows, e.Count = x.at(a), stride(a.b), x.at(y), stride(y.b), x.n, x.count(0)
		if b.b != nil {
			e.B, e.BStride = x.at(b), stride(b.b)
		}
		return x.k.Each(x.r, &e)
	}})
}

// gather takes the wanted rows. All rows are looked at before: what is wrong in one stays so until here.
func (l *planner) gather(n *ir.Node) {
	a := l.place(n.In[0])
	l.wanted = false
	l.check(a, l.p.Widths[n.In[0]])
	l.wanted = true
	y := l.put(n)
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		return x.k.Each(x.r, &Each{Formula: Copy, A: x.at(a), AStride: stride(a.b), Y: x.at(y), YStride: stride(y.b),
			Width: l.p.Widths[n.Out], Numbers: x.s.at(&x.s.wanted), Rows: x.n, Count: x.count(0)})
	}})
}

// check looks for NaN.
func (l *planner) check(a place, width int) {
	l.launch(launch{reads: []*live.Buffer{a.b}, record: func(x *recorder) error {
		return x.k.Finite(x.r, x.at(a), x.s.status(), x.count(0), width, stride(a.b), x.n)
	}})
}

// groupNorm plans a norm that no product makes itself.
func (l *planner) groupNorm(n *ir.Node) {
	a, width := l.place(n.In[0]), l.p.Widths[n.Out]
	y := l.put(n, n.In[0])
	if _, beside := l.targets[n.Out]; !beside && ofRows(n, width) && a.from%4 == 0 {
		l.rowNorm(n, a, y)
		return
	}
	g := GroupNorm{Gain: l.m.vector(n.W), Bias: l.m.vector(n.B), Layer: n.Norm.Layer, Width: width, Group: n.Norm.Group,
		Eps: n.Norm.Eps}
	g.GainByRow, g.BiasByRow = l.byRow(n, n.W), l.byRow(n, n.B)
	idle := func(x *recorder) bool { return l.inside[n] && x.shape.alone }
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, idle: idle, record: func(x *recorder) error {
		g := g
		g.X, g.XStride, g.Y, g.YStride, g.Rows, g.Count = x.at(a), stride(a.b), x.at(y), stride(y.b), x.n, x.count(0)
		return x.k.GroupNorm(x.r, &g)
	}})
}

// rowNorm plans one that products would make themselves if nobody else, of another part of the program perhaps, read
// it: by the same arithmetic.
func (l *planner) rowNorm(n *ir.Node, a, y place) {
	width, gain := l.p.Widths[n.Out], l.m.vector(n.W)
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		return x.k.Norm(x.r, &Norm{X: x.at(a), Y: x.at(y), Gain: gain, Width: width, XStride: stride(a.b),
			Stride: stride(y.b), Rows: x.n, Eps: n.Norm.Eps})
	}})
}

// turn plans a rotation that is not part of attention.
func (l *planner) turn(n *ir.Node) {
	a := l.place(n.In[0])
	y := l.put(n, n.In[0])
	angles := l.m.anglesOf(n.RoPE, n.W)
	t := Turn{Heads: n.RoPE.Heads, Features: n.RoPE.HeadDim, Dims: n.RoPE.Dims, Interleaved: n.RoPE.Interleaved}
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		t := t
		t.X, t.XStride, t.Y, t.YStride, t.Rows, t.Count = x.at(a), stride(a.b), x.at(y), stride(y.b), x.n, x.count(0)
		t.Angles = x.s.at(&x.s.angles[angles])
		return x.k.Turn(x.r, &t)
	}})
}

// prepare plans the form in which products take a value.
func (l *planner) prepare(v live.Prepared) error {
	if l.inputs[v] != nil {
		return nil // whoever computed the value left it in this form
	}
	width := l.p.Widths[v.Value]
	in := &input{}
	l.inputs[v] = in
	from := v.Value
	if n := l.norms[v.Value]; n != nil {
		in.norm, from = n, n.In[0]
	}
	a := l.place(from)
	if in.norm == nil && v.Form == inFloats && a.from == 0 && a.b.Width == width && width%tileCols == 0 {
		in.b = a.b // as it lies
		return nil
	}
	in.b, in.x = l.buffer(live.Buffer{Width: width, Form: v.Form}), a
	norm := Norm{Width: width, Stride: PaddedWidth(width), Quantise: v.Form == inBytes}
	if in.norm != nil {
		norm.Gain, norm.Eps = l.m.vector(in.norm.W), in.norm.Norm.Eps
	}
	if a.from%4 != 0 {
		return fmt.Errorf("value %d begins at feature %d of a row, which no norm reads", from, a.from)
	}
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{in.b},
		idle: func(x *recorder) bool { return x.inline(in) },
		record: func(x *recorder) error {
			n := norm
			n.X, n.XStride, n.Y, n.Rows = x.at(a), stride(a.b), x.at(place{b: in.b}), x.n
			return x.k.Norm(x.r, &n)
		}})
	return nil
}
