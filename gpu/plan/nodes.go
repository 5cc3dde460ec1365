package plan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// node plans the launches of a node, and of the nodes that are part of its kernel.
func (l *planner) node(n *ir.Node) error {
	if err := lacks(l.program.Program, n); err != nil {
		return err
	}
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
		l.attention(n)
	case ir.GLU:
		l.glu(n)
	case ir.Add:
		l.each(n, kernel.Each{Formula: kernel.Sum})
	case ir.Mul:
		l.each(n, kernel.Each{Formula: kernel.Product, BWidth: l.program.Widths[n.In[1]]})
	case ir.Scale:
		l.each(n, kernel.Each{Formula: kernel.Scaled, Factor: n.Factor})
	case ir.SoftCap:
		l.each(n, kernel.Each{Formula: kernel.SoftCap, Factor: n.Factor})
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
	case ir.Around:
		l.around(n)
	case ir.Adapt:
		l.adapt(n)
	default:
		return l.plain(n)
	}
	return nil
}

func of(all ...*live.Buffer) []*live.Buffer { return all }

// embed is the launch of an ir.Embed.
type embed struct {
	w *kernel.Matrix
	y place
}

func (l *planner) embed(n *ir.Node) {
	e := &embed{l.target.Weights.Lookup(n.W), l.put(n)}
	l.launch(e, nil, of(e.y.b))
}

func (e *embed) emit(x *stream) {
	x.launch(&kernel.Embed{W: e.w, IDs: x.entry(x.Entry.IDs), Drawn: x.at.Drawn, Y: x.where(e.y), YStride: stride(e.y.b),
		Rows: x.n})
}

// each is the launch of a formula of one value, or of two, feature by feature.
type each struct {
	k       kernel.Each // complete but for addresses and rows
	a, b, y place       // b.b nil: there is none
}

func (l *planner) each(n *ir.Node, k kernel.Each) {
	e := &each{k: k, a: l.place(n.In[0])}
	reads, over := of(e.a.b), n.In[:1]
	if len(n.In) == 2 {
		e.b, over = l.place(n.In[1]), n.In
		reads = append(reads, e.b.b)
	}
	e.y, e.k.Width = l.put(n, over...), l.program.Widths[n.Out]
	l.launch(e, reads, of(e.y.b))
}

func (e *each) emit(x *stream) {
	k := e.k
	k.A, k.AStride, k.Y, k.YStride, k.Rows, k.Count = x.where(e.a), stride(e.a.b), x.where(e.y), stride(e.y.b), x.n,
		x.count(0)
	if e.b.b != nil {
		k.B, k.BStride = x.where(e.b), stride(e.b.b)
	}
	x.launch(&k)
}

// glu plans a GLU: with its two products as a pair, or alone.
func (l *planner) glu(n *ir.Node) {
	if s := l.gated[n]; s != nil {
		l.pair(n, s)
		return
	}
	e := kernel.Each{Formula: kernel.Activate, Act: n.Act}
	if len(n.In) == 2 {
		e.Formula = kernel.Gate
	}
	l.each(n, e)
}

// gather is the launch that copies the wanted rows.
type gather struct {
	a, y  place
	width int
}

// gather plans an ir.Rows, and before it a check for NaN in all rows, of which most end here. A NaN that an earlier
// node made is still in its row.
func (l *planner) gather(n *ir.Node) {
	a, width := l.place(n.In[0]), l.program.Widths[n.Out]
	l.wanted = false
	l.launch(&finite{a, l.program.Widths[n.In[0]]}, of(a.b), nil)
	l.wanted = true
	g := &gather{a, l.put(n), width}
	l.launch(g, of(a.b), of(g.y.b))
}

func (g *gather) emit(x *stream) {
	x.launch(&kernel.Each{Formula: kernel.Copy, A: x.where(g.a), AStride: stride(g.a.b), Y: x.where(g.y),
		YStride: stride(g.y.b), Width: g.width, Numbers: x.entry(x.Entry.Wanted), Numbered: x.shape.Rows, Rows: x.n,
		Count: x.count(0)})
}

// finite is the launch that looks for NaN.
type finite struct {
	a     place
	width int
}

func (f *finite) emit(x *stream) { x.finite(x.where(f.a), stride(f.a.b), f.width) }

// groupNorm is the launch of a norm that is not part of a product.
type groupNorm struct {
	k      kernel.GroupNorm
	a, y   place
	inside bool // attention computes it where sequences have one row each
}

func (l *planner) groupNorm(n *ir.Node) {
	a, width := l.place(n.In[0]), l.program.Widths[n.Out]
	y := l.put(n, n.In[0])
	w := l.target.Weights
	if _, beside := l.targets[n.Out]; !beside && ofRows(n, width) && a.from%4 == 0 {
		l.launch(&rowNorm{kernel.Norm{Gain: w.Vector(n.W), Width: width, XStride: stride(a.b), Stride: stride(y.b),
			Eps: n.Norm.Eps}, a, y}, of(a.b), of(y.b))
		return
	}
	l.launch(&groupNorm{kernel.GroupNorm{Gain: w.Vector(n.W), Bias: w.Vector(n.B), Layer: n.Norm.Layer, Width: width,
		Group: n.Norm.Group, Eps: n.Norm.Eps, GainByRow: l.byRow(n, n.W), BiasByRow: l.byRow(n, n.B)}, a, y, l.inside[n]},
		of(a.b), of(y.b))
}

func (g *groupNorm) emit(x *stream) {
	if g.inside && x.shape.Alone {
		return
	}
	k := g.k
	k.X, k.XStride, k.Y, k.YStride, k.Rows, k.Count = x.where(g.a), stride(g.a.b), x.where(g.y), stride(g.y.b), x.n,
		x.count(0)
	x.launch(&k)
}

// rowNorm is the launch of a norm of whole rows that is not part of a product, since other nodes read it, too. It uses
// the arithmetic of norms in products: so bits do not depend on what else, perhaps on another device, reads it.
type rowNorm struct {
	k    kernel.Norm
	a, y place
}

func (r *rowNorm) emit(x *stream) {
	k := r.k
	k.X, k.Y, k.Rows = x.where(r.a), x.where(r.y), x.n
	x.launch(&k)
}

// turn is the launch of a rotation that is not part of attention.
type turn struct {
	k      kernel.Turn
	a, y   place
	angles int
}

func (l *planner) turn(n *ir.Node) {
	a := l.place(n.In[0])
	t := &turn{kernel.Turn{Heads: n.RoPE.Heads, Features: n.RoPE.HeadDim, Dims: n.RoPE.Dims,
		Interleaved: n.RoPE.Interleaved}, a, l.put(n, n.In[0]), l.entry.angles(n.RoPE, n.W)}
	l.launch(t, of(a.b), of(t.y.b))
}

func (t *turn) emit(x *stream) {
	k := t.k
	k.X, k.XStride, k.Y, k.YStride, k.Rows, k.Count = x.where(t.a), stride(t.a.b), x.where(t.y), stride(t.y.b), x.n,
		x.count(0)
	k.Angles = x.entry(x.Entry.Angles[t.angles])
	x.launch(&k)
}

// prepared is the launch that brings a value to the form in which products take it.
type prepared struct {
	k  kernel.Norm
	in *input
}

// prepare plans how a value comes to the form in which products take it.
func (l *planner) prepare(v live.Prepared) error {
	if l.inputs[v] != nil {
		return nil // whoever computed the value left it in this form
	}
	width := l.program.Widths[v.Value]
	in := &input{}
	l.inputs[v] = in
	from := v.Value
	if n := l.norms[v.Value]; n != nil {
		in.norm, from = n, n.In[0]
	}
	a := l.place(from)
	if in.norm == nil && v.Form == inFloats && a.from == 0 && a.b.Width == width && width%kernel.TileCols == 0 {
		in.b = a.b // as it lies
		return nil
	}
	if a.from%4 != 0 {
		return fmt.Errorf("value %d begins at feature %d of a row, which no norm reads", from, a.from)
	}
	in.b, in.x = l.buffer(live.Buffer{Width: width, Form: v.Form}), a
	k := kernel.Norm{Width: width, XStride: stride(a.b), Stride: kernel.PaddedWidth(width), Quantise: v.Form == inBytes}
	if in.norm != nil {
		k.Gain, k.Eps = l.target.Weights.Vector(in.norm.W), in.norm.Norm.Eps
	}
	l.launch(&prepared{k, in}, of(a.b), of(in.b))
	return nil
}

func (p *prepared) emit(x *stream) {
	if x.inline(p.in) {
		return
	}
	k := p.k
	k.X, k.Y, k.Rows = x.where(p.in.x), x.blob(p.in.b), x.n
	x.launch(&k)
}

// Lacks returns an error that wraps ErrNoKernel if a program has an op that no card has a kernel for.
func Lacks(p *ir.Program) error {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if err := lacks(p, &p.Segments[s].Nodes[i]); err != nil {
				return fmt.Errorf("%s: %w", &p.Segments[s], err)
			}
		}
	}
	return nil
}

// lacks is Lacks of a node. A row's entry in a step says where it sees to, not from where.
func lacks(p *ir.Program, n *ir.Node) error {
	switch n.Op {
	case ir.XIELU, ir.Clip, ir.Exceed, ir.Level, ir.Conv2D, ir.GridNorm, ir.Leaky, ir.Previous, ir.WKV, ir.HeadDot,
		ir.Token, ir.Gram, ir.Compress, ir.Balance:
		return fmt.Errorf("%s: %w", n.Op, ErrNoKernel)
	case ir.Route:
		if n.Route.Neighbours > 1 {
			return fmt.Errorf("%s to neighbours: %w", n.Op, ErrNoKernel)
		}
		if n.Route.Scoring == ir.SqrtSoftplus || len(n.In) > 1 {
			return fmt.Errorf("%s by %s of %d inputs: %w", n.Op, n.Route.Scoring, len(n.In), ErrNoKernel)
		}
	case ir.RoPE:
		if n.RoPE.Shift != 0 {
			return fmt.Errorf("%s of positions beside a row's: %w", n.Op, ErrNoKernel)
		}
	case ir.CausalConv:
		if n.Every > 1 {
			return fmt.Errorf("%s of every %d positions: %w", n.Op, n.Every, ErrNoKernel)
		}
	case ir.SSMScan, ir.DeltaRule:
		if n.Scan.ByKey {
			return fmt.Errorf("%s by key: %w", n.Op, ErrNoKernel)
		}
	case ir.GLU, ir.Experts:
		if n.Act > ir.Clamped {
			return fmt.Errorf("%s by %s: %w", n.Op, n.Act, ErrNoKernel)
		}
	case ir.Affine:
		if n.W != ir.NoRef {
			if by := p.Weights[n.W].Rows * p.Weights[n.W].Cols; by > 1 && by < p.Widths[n.Out] {
				return fmt.Errorf("%s of %d heads: %w", n.Op, by, ErrNoKernel)
			}
		}
	case ir.Mul:
		if by := p.Widths[n.In[1]]; by > 1 && by < p.Widths[n.Out] {
			return fmt.Errorf("%s of %d heads: %w", n.Op, by, ErrNoKernel)
		}
	case ir.Attend:
		switch {
		case n.Attend.Reach > 0:
			return fmt.Errorf("%s both ways within %d positions: %w", n.Op, n.Attend.Reach, ErrNoKernel)
		case n.Attend.Buckets > 0:
			return fmt.Errorf("%s with biases by distance: %w", n.Op, ErrNoKernel)
		case n.Attend.Every > 0 || n.Attend.Sums:
			return fmt.Errorf("%s to every %d positions, with sums: %t: %w", n.Op, n.Attend.Every, n.Attend.Sums, ErrNoKernel)
		case n.Attend.Side > 0:
			return fmt.Errorf("%s to what was %s: %w", n.Op, n.Attend.Side, ErrNoKernel)
		case n.Attend.Alibi > 0:
			return fmt.Errorf("%s whose scores fall with the distance (ALiBi): %w", n.Op, ErrNoKernel)
		}
	}
	return nil
}
