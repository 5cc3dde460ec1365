package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// with is the launch of an Each whose second operand is no value of the program: weights, or factors in the entry.
type with struct {
	k       kernel.Each
	a, y    place
	vector  uint64 // address of weights; 0: the operand is in the entry
	tempers int    // then the number of a Temper
}

func (l *planner) with(n *ir.Node, w with) {
	w.k.Width = l.program.Widths[n.Out]
	l.launch(&w, of(w.a.b), of(w.y.b))
}

func (w *with) emit(x *stream) {
	k := w.k
	k.A, k.AStride, k.Y, k.YStride, k.Rows, k.Count = x.where(w.a), stride(w.a.b), x.where(w.y), stride(w.y.b), x.n,
		x.count(0)
	if k.B = w.vector; k.B == 0 {
		k.B = x.entry(x.Entry.Tempers[w.tempers])
	}
	x.launch(&k)
}

// temper plans a Temper.
func (l *planner) temper(n *ir.Node) {
	i := number(&l.entry.tempers, Temper{n.Factor, n.Every, n.From})
	l.with(n, with{k: kernel.Each{Formula: kernel.Product, BWidth: 1, BStride: 1}, a: l.place(n.In[0]),
		y: l.put(n, n.In[0]), tempers: i})
}

// affine plans an Affine. Its weights are read without a stride: all rows take the same.
func (l *planner) affine(n *ir.Node) {
	a := l.place(n.In[0])
	y := l.put(n, n.In[0])
	if n.W != ir.NoRef {
		w := &l.program.Weights[n.W]
		l.with(n, with{k: kernel.Each{Formula: kernel.Product, BWidth: w.Rows * w.Cols}, a: a, y: y,
			vector: l.target.Weights.Vector(n.W)})
		a = y
	}
	if n.B != ir.NoRef {
		l.with(n, with{k: kernel.Each{Formula: kernel.Sum}, a: a, y: y, vector: l.target.Weights.Vector(n.B)})
	}
}

// lookedUp is the launch that adds rows of a table, chosen by number.
type lookedUp struct {
	a, y    place
	table   uint64
	width   int
	numbers int
}

// lookUp plans a Position or TokenType. The host writes the numbers of the table's rows.
func (l *planner) lookUp(n *ir.Node) {
	var want Numbering
	if n.Op == ir.TokenType {
		want = Numbering{true, n.Sep, l.program.Weights[n.W].Rows - 1}
	}
	x := &lookedUp{a: l.place(n.In[0]), y: l.put(n, n.In[0]), table: l.target.Weights.Vector(n.W),
		width: l.program.Widths[n.Out], numbers: number(&l.entry.numberings, want)}
	l.launch(x, of(x.a.b), of(x.y.b))
}

func (u *lookedUp) emit(x *stream) {
	x.launch(&kernel.Each{Formula: kernel.Sum, A: u.table, AStride: u.width, Numbers: x.entry(x.Entry.Numbers[u.numbers]),
		B: x.where(u.a), BStride: stride(u.a.b), Y: x.where(u.y), YStride: stride(u.y.b), Width: u.width, Rows: x.n,
		Count: x.count(0)})
}

// convolution is the launch of a CausalConv.
type convolution struct {
	k     kernel.Conv
	a, y  place
	class int
}

func (l *planner) convolve(n *ir.Node) {
	w := l.target.Weights
	c := &convolution{a: l.place(n.In[0]), y: l.put(n), class: l.program.States[n.State].Class}
	c.k = kernel.Conv{Weights: w.Vector(n.W), Bias: w.Vector(n.B), Channels: l.program.Widths[n.Out],
		Size: l.program.Weights[n.W].Cols, Of: kernel.Recurrent{States: l.target.States[n.State]}}
	l.launch(c, of(c.a.b), of(c.y.b))
}

func (c *convolution) emit(x *stream) {
	k := c.k
	k.X, k.XStride, k.Y, k.YStride, k.Rows = x.where(c.a), stride(c.a.b), x.where(c.y), stride(c.y.b), x.n
	x.recurrent(&k.Of, c.class)
	x.launch(&k)
}

// neighbours is the launch of an Around.
type neighbours struct {
	k    kernel.Around
	a, y place
}

func (l *planner) around(n *ir.Node) {
	x := &neighbours{k: kernel.Around{Width: l.program.Widths[n.In[0]], Size: n.Size}, a: l.place(n.In[0]), y: l.put(n)}
	l.entry.texts = true
	l.launch(x, of(x.a.b), of(x.y.b))
}

func (r *neighbours) emit(x *stream) {
	k := r.k
	k.X, k.XStride, k.Y, k.YStride, k.Rows, k.Count = x.where(r.a), stride(r.a.b), x.where(r.y), stride(r.y.b), x.n,
		x.count(0)
	k.Texts = x.entry(x.Entry.Texts)
	x.launch(&k)
}

// scan is the launch of an SSMScan or a DeltaRule.
type scan struct {
	k     kernel.Scan
	in    []place
	y     place
	class int
}

func (l *planner) scan(n *ir.Node) {
	w := l.target.Weights
	s := &scan{class: l.program.States[n.State].Class}
	s.k = kernel.Scan{Args: n.Scan, Delta: n.Op == ir.DeltaRule, Decay: w.Vector(n.W), Shift: w.Vector(n.B),
		Skip: w.Vector(n.Scan.D), Of: kernel.Recurrent{States: l.target.States[n.State]}}
	reads := of()
	for _, v := range n.In {
		s.in = append(s.in, l.place(v))
		reads = append(reads, l.place(v).b)
	}
	s.y = l.put(n)
	l.launch(s, reads, of(s.y.b))
}

func (s *scan) emit(x *stream) {
	k := s.k
	for i, a := range s.in {
		k.In[i] = kernel.Floats{At: x.where(a), Stride: stride(a.b)}
	}
	k.Y, k.Rows = kernel.Floats{At: x.where(s.y), Stride: stride(s.y.b)}, x.n
	x.recurrent(&k.Of, s.class)
	x.launch(&k)
}

// recurrent sets the spans of rows that continue states, and the block tables by which a kernel finds these.
func (x *stream) recurrent(r *kernel.Recurrent, class int) {
	r.Spans, r.N, r.Tables = x.entry(x.Entry.Spans[class]), x.shape.Spans, x.at.Tables
}
