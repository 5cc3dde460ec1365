package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// Choice is the buffers in which a route leaves its choice of experts.
type Choice struct {
	Used         int // experts of a row
	ids, weights *live.Buffer
	segment      int
}

// Offsets are where in the scratch memory ids and weights of a choice begin, four bytes each.
func (c *Choice) Offsets() (ids, weights int) { return c.ids.Offset, c.weights.Offset }

// routed is the launch of a Route.
type routed struct {
	k kernel.Route
	a place
	y place
	c *Choice
}

// route plans a Route: it leaves lists of the chosen experts and their weights for products, and the node's value, a
// row with the weights of all experts.
func (l *planner) route(n *ir.Node) {
	r := &routed{a: l.place(n.In[0]), c: l.choice(n.Out, n.Route.Used)}
	r.y = l.put(n)
	r.k = kernel.Route{Args: n.Route, Experts: l.program.Widths[n.Out], Bias: l.target.Weights.Vector(n.B),
		Factors: l.target.Weights.Vector(n.W)}
	l.launch(r, of(r.a.b), of(r.c.ids, r.c.weights, r.y.b))
}

func (r *routed) emit(x *stream) {
	k := r.k
	k.Logits, k.XStride, k.IDs, k.Weights = x.where(r.a), stride(r.a.b), x.blob(r.c.ids), x.blob(r.c.weights)
	k.Dense, k.DenseStride, k.Rows, k.Count = x.where(r.y), stride(r.y.b), x.n, x.count(0)
	x.launch(&k)
}

// choice makes room for a choice of experts.
func (l *planner) choice(weights ir.Value, used int) *Choice {
	list := func() *live.Buffer { return l.blob(4 * used * l.Capacity(l.wanted)) }
	c := &Choice{ids: list(), weights: list(), Used: used, segment: l.segment}
	l.choices[weights] = c
	return c
}

// chosen is the launch that lists a choice which another device made.
type chosen struct {
	k kernel.Chosen
	a place
	c *Choice
}

// listed is the choice that an Experts goes by. If its route is not computed here, a launch lists it from the weights.
func (l *planner) listed(n *ir.Node) *Choice {
	if c := l.choices[n.In[1]]; c != nil {
		return c
	}
	x := &chosen{a: l.place(n.In[1]), c: l.choice(n.In[1], n.Experts.Used)}
	x.k = kernel.Chosen{Experts: l.program.Widths[n.In[1]], Used: x.c.Used, DenseStride: stride(x.a.b)}
	l.launch(x, of(x.a.b), of(x.c.ids, x.c.weights))
	return x.c
}

func (c *chosen) emit(x *stream) {
	k := c.k
	k.Dense, k.IDs, k.Weights, k.Rows, k.Count = x.where(c.a), x.blob(c.c.ids), x.blob(c.c.weights), x.n, x.count(0)
	x.launch(&k)
}

// mixed is an Experts with its choice of experts.
type mixed struct {
	n              *ir.Node
	choice         *Choice
	lists          *live.Buffer         // entries of kernel.Group
	pairs, experts int                  // pairs at most; all experts of the layer
	size           int                  // of entries where rows are many
	weighed        map[live.Form]*input // by form, what gate and up take, if Before
}

// mixture plans the chosen experts of all rows, and their sum.
func (l *planner) mixture(n *ir.Node) {
	e, rows := n.Experts, l.Capacity(l.wanted)
	x := &mixed{n: n, choice: l.listed(n), pairs: rows * e.Used, experts: l.program.Weights[e.Gate].Experts,
		weighed: map[live.Form]*input{}, size: kernel.GroupedColumns}
	for _, r := range e.Matrices() {
		if w := l.target.Weights.Experts(r); w != nil {
			x.size = min(x.size, l.target.Kernels.Gathers(w, e.GateBias != ir.NoRef || e.DownBias != ir.NoRef))
		}
	}
	x.lists = l.blob(int(max(kernel.GroupBytes(x.experts, x.pairs, x.size),
		kernel.GroupBytes(x.experts, x.pairs, kernel.MaxColumns))))
	if l.parted = l.target.Weights.Moves(e.Gate); l.parted {
		l.Routes[x.choice.segment], l.RouteOf[l.segment] = x.choice, x.choice.segment
	}
	l.launch(&grouped{x}, of(x.choice.ids), of(x.lists))
	if e.Before {
		l.weigh(x)
	}
	l.reduce(x, l.expand(x))
}

// grouped gathers the pairs of each expert, where there are several rows.
type grouped struct{ *mixed }

func (g *grouped) emit(x *stream) {
	if x.n > 1 {
		x.launch(&kernel.Group{IDs: x.ids(g.choice), Entries: x.blob(g.lists), Experts: g.experts,
			Pairs: x.n * g.n.Experts.Used, Size: g.gathered(x)})
	}
}

// ids is the list of pairs that a stream takes: all of a choice, or those of a part.
func (x *stream) ids(c *Choice) uint64 {
	if x.at.Experts != 0 {
		return x.at.Listed
	}
	return x.blob(c.ids)
}

// gathered is how many pairs an entry has: few where there are few pairs, since kernels for many columns would compute
// mostly empty ones.
func (m *mixed) gathered(x *stream) int {
	if pairs := x.n * m.n.Experts.Used; pairs < 4*m.experts || x.n <= kernel.FewColumns {
		return kernel.MaxColumns
	}
	return m.size
}

// of is the choice for products: of pairs one by one where there is one row, else gathered.
func (m *mixed) of(x *stream, share int) *kernel.Choice {
	pairs := x.n * m.n.Experts.Used
	if x.n == 1 {
		return &kernel.Choice{List: x.ids(m.choice), Entries: pairs, Pairs: pairs, Share: share}
	}
	size := m.gathered(x)
	return &kernel.Choice{List: x.blob(m.lists), Entries: kernel.GroupEntries(m.experts, pairs, size), Pairs: pairs,
		Grouped: size, Share: share}
}

// weighed is the launch that multiplies a row by the weights of its experts, one result for each pair.
type weighed struct {
	*mixed
	a     place
	rows  *live.Buffer
	width int
}

// weigh plans the rows of pairs of experts that take rows multiplied by their weights, in the forms that gate and up
// take.
func (l *planner) weigh(m *mixed) {
	width := l.program.Widths[m.n.In[0]]
	w := &weighed{m, l.place(m.n.In[0]), l.blob(m.pairs * 4 * kernel.PaddedWidth(width)), width}
	l.launch(w, of(w.a.b, m.choice.weights), of(w.rows))
	for _, r := range m.n.Experts.Takes() {
		form := l.form(r)
		if m.weighed[form] == nil {
			m.weighed[form] = &input{b: l.ready(w.rows, width, m.pairs, m.n.Experts.Used, form == inBytes)}
		}
	}
}

func (w *weighed) emit(x *stream) {
	wide, used := kernel.PaddedWidth(w.width), w.n.Experts.Used
	x.launch(&kernel.Each{Formula: kernel.Product, A: x.where(w.a), AStride: stride(w.a.b), Share: used,
		B: x.blob(w.choice.weights), BStride: 1, BWidth: 1, Y: x.blob(w.rows), YStride: wide, Width: w.width, Filled: wide,
		Rows: x.n * used})
}

// expand plans gate and up of all pairs, and returns the buffer of their result, in the form that down takes.
func (l *planner) expand(m *mixed) *live.Buffer {
	weights, e := l.target.Weights, m.n.Experts
	gate, down := weights.Experts(e.Gate), weights.Experts(e.Down)
	wide := kernel.PaddedWidth(gate.Rows)
	k := kernel.MatVec{Bias: weights.Vector(e.GateBias)}
	if gate.Pair {
		k.Glue, k.Act, k.UpBias = kernel.SwiGLU, m.n.Act, weights.Vector(e.UpBias)
		if !down.Float {
			k.Glue = kernel.SwiGLUToInt8
			hidden := l.blob(m.pairs * kernel.QuantisedBytes(gate.Rows))
			l.expandBy(m, gate, k, hidden)
			return hidden
		}
	}
	hidden := l.blob(m.pairs * 4 * wide)
	l.expandBy(m, gate, k, hidden)
	switch {
	case e.Ungated():
		l.launch(&activePairs{m, hidden, gate.Rows}, of(hidden), of(hidden))
	case !gate.Pair:
		up := l.blob(m.pairs * 4 * wide)
		l.expandBy(m, weights.Experts(e.Up), kernel.MatVec{Bias: weights.Vector(e.UpBias)}, up)
		l.launch(&gatedPairs{m, hidden, up, gate.Rows}, of(up, hidden), of(hidden))
	}
	return l.ready(hidden, gate.Rows, m.pairs, e.Used, !down.Float)
}

// activePairs is the launch that activates what experts without a gate multiplied.
type activePairs struct {
	*mixed
	hidden *live.Buffer
	width  int
}

func (a *activePairs) emit(x *stream) {
	wide := kernel.PaddedWidth(a.width)
	x.launch(&kernel.Each{Formula: kernel.Activate, Act: a.n.Act, A: x.blob(a.hidden), Y: x.blob(a.hidden),
		AStride: wide, YStride: wide, Width: a.width, Rows: x.n * a.n.Experts.Used})
}

// gatedPairs is the launch that activates gate and up where they are two matrices, not a pair.
type gatedPairs struct {
	*mixed
	hidden, up *live.Buffer
	width      int
}

func (g *gatedPairs) emit(x *stream) {
	wide := kernel.PaddedWidth(g.width)
	x.launch(&kernel.Each{Formula: kernel.Gate, Act: g.n.Act, A: x.blob(g.hidden), B: x.blob(g.up), Y: x.blob(g.hidden),
		AStride: wide, BStride: wide, YStride: wide, Width: g.width, Rows: x.n * g.n.Experts.Used})
}

// expanded is the launch that multiplies what goes into the experts by one of their matrices.
type expanded struct {
	*mixed
	k     kernel.MatVec
	in    *input
	share int
	to    *live.Buffer
}

func (l *planner) expandBy(m *mixed, w *kernel.Matrix, k kernel.MatVec, to *live.Buffer) {
	in, share := m.weighed[formOf(w)], 1
	if in == nil {
		in, share = l.taken(m.n, w, m.n.Experts.Used), m.n.Experts.Used
	}
	k.W, k.YStride = w, kernel.PaddedWidth(w.Rows)
	l.launch(&expanded{m, k, in, share, to}, append(in.reads(), m.choice.ids, m.lists), of(to))
}

func (e *expanded) emit(x *stream) {
	k := e.k
	k.W = x.matrix(k.W)
	x.give(&k, e.in)
	k.Experts, k.Y = e.of(x, e.share), x.blob(e.to)
	k.Columns = k.Experts.Columns()
	x.launch(&k)
}

// reduced is the launch of down for all pairs and, if summed, of the sum over each row's pairs.
type reduced struct {
	*mixed
	down     kernel.MatVec
	hidden   *live.Buffer
	out      *live.Buffer
	summed   bool
	sum      kernel.Combine
	y        place
	residual *place
}

// reduce plans down and the sum over each row's pairs. In a step of one row, one kernel does both and adds the
// residual, with the same bits. Where experts come in parts, the sum is a launch of its own after the last part.
func (l *planner) reduce(m *mixed, hidden *live.Buffer) {
	w := l.target.Weights.Experts(m.n.Experts.Down)
	r := &reduced{mixed: m, hidden: hidden, out: l.blob(m.pairs * 4 * kernel.PaddedWidth(w.Rows)), summed: !l.parted}
	r.down = kernel.MatVec{W: w, XStride: kernel.PaddedWidth(w.Cols), YStride: kernel.PaddedWidth(w.Rows),
		Bias: l.target.Weights.Vector(m.n.Experts.DownBias)}
	r.sum = kernel.Combine{XStride: kernel.PaddedWidth(w.Rows), Width: l.program.Widths[m.n.Out], Used: m.n.Experts.Used}
	reads := of(hidden, m.choice.ids, m.lists)
	if l.parted {
		l.launch(r, reads, of(r.out))
		l.parted = false
		r.y = l.putAlone(m.n)
		l.launch(&combined{r}, of(r.out, m.choice.weights), of(r.y.b))
		return
	}
	r.y, r.residual = l.putSum(m.n)
	reads = append(reads, m.choice.weights)
	if r.residual != nil {
		reads = append(reads, r.residual.b)
	}
	l.launch(r, reads, of(r.out, r.y.b))
}

func (r *reduced) emit(x *stream) {
	k := r.down
	k.W, k.Experts, k.X, k.Y = x.matrix(k.W), r.of(x, 1), x.blob(r.hidden), x.blob(r.out)
	k.Columns = k.Experts.Columns()
	if !r.summed {
		x.launch(&k)
		return
	}
	c := r.combine(x)
	if x.n == 1 && !r.n.Experts.Before {
		s := k
		s.Experts = &kernel.Choice{List: k.Experts.List, Entries: 1, Pairs: c.Used, Share: c.Used, Shares: c.Weights}
		s.Y, s.YStride, s.Residual = c.Y, c.YStride, c.Residual
		if x.target.Kernels.Fits(&s) {
			x.launch(&s)
			return
		}
	}
	x.launch(&k)
	x.launch(c)
}

// combine returns the launch that sums each row's pairs.
func (r *reduced) combine(x *stream) *kernel.Combine {
	c := r.sum
	c.X, c.Weights, c.Y, c.YStride = x.blob(r.out), x.blob(r.choice.weights), x.where(r.y), stride(r.y.b)
	c.Rows, c.Count = x.n, x.count(0)
	if r.residual != nil {
		c.Residual = x.where(*r.residual)
	}
	if r.n.Experts.Before {
		c.Weights = 0
	}
	return &c
}

// combined is the launch of the sum of pairs that came in parts.
type combined struct{ *reduced }

func (c *combined) emit(x *stream) { x.launch(c.combine(x)) }

// readied is the launch that converts rows of pairs to the form that the next product takes.
type readied struct {
	from, to *live.Buffer
	width    int
	used     int
	bytes    bool
}

// ready plans the conversion of rows of pairs to the form that the next product takes, where they are not in it.
func (l *planner) ready(hidden *live.Buffer, width, pairs, used int, bytes bool) *live.Buffer {
	if !bytes && width%kernel.TileCols == 0 {
		return hidden
	}
	r := &readied{hidden, l.blob(pairs * 4 * kernel.PaddedWidth(width)), width, used, bytes}
	l.launch(r, of(hidden), of(r.to))
	return r.to
}

func (r *readied) emit(x *stream) {
	wide := kernel.PaddedWidth(r.width)
	x.launch(&kernel.Norm{X: x.blob(r.from), Y: x.blob(r.to), Width: r.width, XStride: wide, Stride: wide,
		Rows: x.n * r.used, Quantise: r.bytes})
}
