package cpu

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// bind builds segments from phases; the memory of values and weights is there.
func (m *model) bind(p *ir.Bound, l *layout, phases [][]live.Phase) {
	b := binder{m: m, p: p, layout: l, known: map[live.Prepared]*kernels.Acts{}}
	for i := range p.Segments {
		m.segments = append(m.segments, b.segment(&p.Segments[i], phases[i]))
	}
	b.foresights()
	b.end()
	m.borders = l.borders()
}

// binder turns phases into runners that hold references to their memory.
type binder struct {
	m      *model
	p      *ir.Bound
	layout *layout
	known  map[live.Prepared]*kernels.Acts
	ropes  []*ropeTable // each distinct table once
}

func (b *binder) segment(s *ir.Segment, phases []live.Phase) segment {
	seg := segment{name: s.String(), guarded: b.m.config.InPlace() != nil, ends: s.Kind.Ends()}
	for i := range phases {
		if divides(b.m, &phases[i]) {
			if seg.parts == 0 {
				seg.before = i
			}
			seg.parts = i + 1 - seg.before
		}
		seg.phases = append(seg.phases, b.phase(&phases[i]))
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		seg.guarded = seg.guarded || n.Op.LooksUp() && b.m.weights[n.W].table != nil && b.m.config.Uploaded().Tables != nil
		if n.Op == ir.Route {
			seg.route, seg.used = b.layout.place(n.Out), n.Route.Used
		}
	}
	return seg
}

// divides says whether a phase has separate work for each of several groups.
func divides(m *model, ph *live.Phase) bool {
	return ph.Kind == live.Experts || ph.Kind == live.Products && len(ph.Items) == 1 &&
		len(m.weights[ph.Items[0].Node.W].parts) > 1
}

func (b *binder) phase(ph *live.Phase) runner {
	switch ph.Kind {
	case live.Products:
		return b.product(ph)
	case live.Alone:
		return b.alone(ph.Items[0].Node, ph.Wanted)
	case live.Observed:
		return b.observation(ph)
	case live.Experts:
		return b.experts(ph)
	}
	c := &chain{ex: &b.m.execution, wanted: ph.Wanted}
	width := 1
	for i := range ph.Items {
		c.ops = append(c.ops, b.op(&ph.Items[i], ph.Wanted))
		for _, v := range ph.Items[i].Reads() {
			width += b.p.Widths[v]
		}
	}
	c.grain = max(1, chainGrain/width)
	return c
}

// alone binds a node that is neither a product nor computed row by row.
func (b *binder) alone(n *ir.Node, wanted bool) runner {
	switch n.Op {
	case ir.HeadLinear:
		return b.headLinear(n, wanted)
	case ir.CausalConv, ir.Previous:
		return b.convolution(n)
	case ir.SSMScan, ir.DeltaRule:
		if byChannel(n) {
			return b.channelScan(n)
		}
		return b.scan(n)
	case ir.WKV:
		return b.wkv(n)
	case ir.Compress:
		return b.compression(n)
	case ir.Attend:
		return b.attention(n)
	case ir.Around:
		return b.around(n)
	case ir.Conv2D:
		return b.conv2D(n)
	case ir.GridNorm:
		return b.gridNorm(n)
	}
	return b.plain(n, wanted)
}

// op binds an item of a chain.
func (b *binder) op(it *live.Item, wanted bool) rowOp {
	n := it.Node
	switch it.Verb {
	case live.Prepare:
		return b.prepare(it)
	case live.Store:
		return b.store(n)
	}
	out := b.layout.place(n.Out)
	var in [2]place
	for i, v := range n.In {
		in[i] = b.layout.place(v)
	}
	switch n.Op {
	case ir.Embed:
		return &embedOp{out: out, w: &b.m.weights[n.W]}
	case ir.Norm:
		return b.norm(n, out, in[0])
	case ir.RoPE:
		return b.rope(n, out, in[0])
	case ir.GLU:
		return &gluOp{out: out, x: in[0], up: in[1], gated: len(n.In) == 2, act: n.Act, limit: n.Factor}
	case ir.Add:
		return &addOp{out, in[0], in[1]}
	case ir.Mul:
		return &mulOp{out, in[0], in[1]}
	case ir.Scale:
		return &scaleOp{out, in[0], n.Factor}
	case ir.Leaky, ir.Clip, ir.Exceed, ir.Level, ir.XIELU, ir.Balance:
		return rare(n, out, in)
	case ir.Temper:
		return &temperOp{out, in[0], n.Factor, n.Every, n.From}
	case ir.Affine:
		return &affineOp{out, in[0], b.vector(n.W), b.vector(n.B)}
	case ir.Position:
		return &positionOp{out, in[0], b.vector(n.W)}
	case ir.TokenType:
		return &tokenTypeOp{out, in[0], b.vector(n.W), n.Sep}
	case ir.HeadSlice:
		return &headSliceOp{out, in[0], n.Heads, n.From}
	case ir.Token:
		return &tokenOp{out}
	case ir.Gram:
		return &gramOp{out: out, x: in[0], args: n.Gram, w: &b.m.weights[n.W]}
	case ir.HeadDot:
		return &headDotOp{out, in[0], in[1]}
	case ir.HeadJoin:
		return &headJoinOp{out, in[0], in[1], n.Heads, b.p.SharesHead(n)}
	case ir.SoftCap:
		return &softCapOp{out, in[0], n.Factor}
	case ir.Rows:
		return &rowsOp{out, in[0]}
	case ir.Route:
		return b.router(n, out, in)
	case ir.Adapt:
		return &adaptOp{out: out, y: in[0], x: in[1], site: n.Site, token: len(n.In) == 1, wanted: wanted}
	case ir.Experts:
		return b.combine(n, out, in[1])
	}
	panic(fmt.Sprintf("cpu: %s is no operation on rows", n.Op))
}

// rare binds an op that few families have.
func rare(n *ir.Node, out place, in [2]place) rowOp {
	switch n.Op {
	case ir.Leaky:
		return &eachOp{out, in[0], func(v float32) float32 {
			if v < 0 {
				v *= n.Factor
			}
			return v
		}}
	case ir.Clip:
		return &eachOp{out, in[0], func(v float32) float32 { return max(min(v, n.Factor), -n.Factor) }}
	case ir.Exceed:
		return &exceedOp{out, in[0], n.Factor}
	case ir.Level:
		return &levelOp{out, in[0], in[1]}
	case ir.Balance:
		return &balanceOp{out, in[0], n}
	default:
		return &xieluOp{out, in[0], n.XIELU}
	}
}

// end adds the checks and copies of the last segment's result: finite logits, or vectors, in the step's memory.
func (b *binder) end() {
	if !b.layout.leaves() {
		return // somebody else computes the head, or there is none
	}
	last := &b.m.segments[len(b.m.segments)-1]
	out := b.layout.place(b.p.End())
	c := &chain{ex: &b.m.execution, wanted: true, grain: 1}
	if !out.logits {
		logits := place{logits: true, stride: out.width, width: out.width}
		c.ops = append(c.ops, &scaleOp{logits, out, 1})
	}
	what := "the logits"
	if b.p.Segments[len(b.p.Segments)-1].Kind == ir.SegPool {
		what = "the vectors"
	}
	c.ops = append(c.ops, &finiteOp{out, what})
	last.phases = append(last.phases, c)
}

// vector is a weight's values, or nil.
func (b *binder) vector(r ir.Ref) []float32 {
	if r == ir.NoRef {
		return nil
	}
	return b.m.weights[r].vector
}

// prepare quantises activations; those that stay float32 are only checked.
func (b *binder) prepare(it *live.Item) rowOp {
	in := b.layout.place(it.Input.Value)
	what := fmt.Sprintf("the input of %s", b.readers(it))
	if it.Input.Form == 0 {
		return &finiteOp{in, what}
	}
	return &quantizeOp{in: in, acts: b.acts(it.Input), what: what}
}

// readers names the first product that reads a prepared value, for messages.
func (b *binder) readers(it *live.Item) string {
	for s := range b.p.Segments {
		for i := range b.p.Segments[s].Nodes {
			n := &b.p.Segments[s].Nodes[i]
			for _, r := range matrices(n) {
				if b.input(n.In[0], r) == it.Input {
					return b.p.Weights[r].Name
				}
			}
		}
	}
	return "nothing"
}

// matrices lists the weights that multiply a node's first input.
func matrices(n *ir.Node) []ir.Ref {
	switch n.Op {
	case ir.Linear:
		return []ir.Ref{n.W}
	case ir.Experts:
		return n.Experts.Takes()
	}
	return nil
}

// input names the rows that a matrix multiplies.
func (b *binder) input(v ir.Value, w ir.Ref) live.Prepared {
	return live.Prepared{Value: v, Form: liveForm(kernels.FormOf(b.p.Types[w]))}
}

// acts describes the input of products: blocks that quantizeOp fills, or the float32 value itself.
func (b *binder) acts(input live.Prepared) *kernels.Acts {
	if a := b.known[input]; a != nil {
		return a
	}
	a := &kernels.Acts{Form: formOf(input.Form), Cols: b.p.Widths[input.Value]}
	if input.Form == 0 {
		in := b.layout.place(input.Value)
		a.Float, a.Stride = b.m.scratch[in.off:], in.stride
	} else {
		buf := b.layout.buffers.Prepared(input)
		rows, tiles := b.layout.bytes(buf)
		memory := bytesOf(b.m.scratch[buf.Offset:][:(rows+tiles)/4])
		a.Blocks = memory[:rows]
		if tiles > 0 {
			a.Tiles = memory[rows:]
		}
	}
	b.known[input] = a
	return a
}

func (b *binder) attention(n *ir.Node) *attention {
	a := n.Attend
	x := &attention{
		ex: &b.m.execution, args: a, cache: b.m.caches[a.KV], store: b.store(n),
		rows: rowsTogether(a.Heads / a.KVHeads),
		q:    b.layout.place(n.In[0]), out: b.layout.place(n.Out),
		headsPerKV: a.Heads / a.KVHeads, sinks: b.vector(n.W), slopes: slopesOf(a),
		biases: biasesOf(a, b.vector(n.B)), split: &b.m.split,
	}
	if x.cache.open != x.cache && len(n.In) > 1 {
		x.sealing = newSealing(&b.m.execution, x.cache)
	}
	return x
}

// store is the storeOp of a node; nil if it attends to what another one stored.
func (b *binder) store(n *ir.Node) *storeOp {
	if len(n.In) == 1 {
		return nil
	}
	c := b.m.caches[n.Attend.KV]
	o := &storeOp{cache: c.open, index: n.Attend.KV, k: b.layout.place(n.In[1]), v: b.layout.place(n.In[2])}
	if o.side = n.Attend.Side; o.side > 0 {
		o.zeros = make([]float32, b.m.device.pool.size()*max(c.KDim, c.VDim))
	} else if c.open == c {
		o.short = rowsTogether(n.Attend.Heads / n.Attend.KVHeads)
	} // else all rows must be there before blocks are sealed, which is before attention, or in blocks that it never reads
	return o
}

func (b *binder) product(ph *live.Phase) *linear {
	l := &linear{ex: &b.m.execution, wanted: ph.Wanted}
	for i := range ph.Items {
		b.products(l, ph.Items[i].Node)
	}
	l.now = make([]product, 0, len(l.products))
	return l
}

// products adds the products of a node, one for each group.
func (b *binder) products(l *linear, n *ir.Node) {
	w, bias, row := &b.m.weights[n.W], b.vector(n.B), 0
	for i, part := range w.parts {
		p := product{group: w.groups[i], out: b.layout.place(n.Out), w: part, acts: b.acts(b.input(n.In[0], n.W))}
		p.out.off += row
		if bias != nil {
			p.bias = bias[row:][:part.Rows]
		}
		l.products = append(l.products, p)
		row += part.Rows
	}
}

func (b *binder) observation(ph *live.Phase) *observation {
	o := &observation{ex: &b.m.execution, wanted: ph.Wanted}
	for _, it := range ph.Items {
		o.seen = append(o.seen, seen{it.Node.W, b.layout.place(it.Node.In[0])})
	}
	return o
}

func (b *binder) norm(n *ir.Node, out, x place) *normOp {
	name := "a norm without weight"
	if n.W != ir.NoRef {
		name = b.p.Weights[n.W].Name
	}
	return &normOp{out: out, x: x, args: n.Norm, g: b.vector(n.W), b: b.vector(n.B), name: name}
}

func (b *binder) rope(n *ir.Node, out, x place) *ropeOp {
	return &ropeOp{out: out, x: x, args: n.RoPE, table: b.ropeTable(n.RoPE, b.vector(n.W))}
}

// ropeTable returns the table of the same angles, or makes one.
func (b *binder) ropeTable(a *ir.RoPEArgs, divisors []float32) *ropeTable {
	for _, t := range b.ropes {
		if slices.Equal(t.args.Freq, a.Freq) && slices.Equal(t.args.Axes, a.Axes) && t.args.Mscale == a.Mscale &&
			t.args.Shift == a.Shift &&
			same(t.divisors, divisors) {
			return t
		}
	}
	rows, pairs := b.m.config.MaxRows, a.Dims/2
	t := &ropeTable{
		args: a, divisors: divisors, pairs: pairs,
		at: slices.Repeat([]ir.Place{{-1}}, rows), cos: make([]float32, rows*pairs), sin: make([]float32, rows*pairs),
	}
	b.ropes = append(b.ropes, t)
	return t
}

// experts binds a pass of an Experts.
func (b *binder) experts(ph *live.Phase) runner {
	n, it := ph.Items[0].Node, &ph.Items[0]
	e := n.Experts
	left := b.layout.buffers.Left(n, expand)
	hidden := b.slots(n, left[leftHidden])
	if it.Pass == contract {
		return &contraction{
			ex: &b.m.execution, hidden: hidden, form: kernels.FormOf(b.p.Types[e.Down]),
			down: b.stack(e.Down, e.DownBias, b.slots(n, b.layout.down(n))),
			what: "the input of " + b.p.Weights[e.Down].Name,
		}
	}
	x := &expansion{
		ex: &b.m.execution, wanted: ph.Wanted, used: e.Used, act: n.Act, limit: n.Factor, before: e.Before,
		upCap: e.UpCap,
		in:    b.layout.place(n.In[0]), weights: b.layout.place(n.In[1]),
		gate:  b.stack(e.Gate, e.GateBias, hidden),
		xGate: b.acts(b.input(n.In[0], e.Gate)),
	}
	if !e.Ungated() {
		x.up = b.stack(e.Up, e.UpBias, b.slots(n, left[leftUp]))
		x.xUp = b.acts(b.input(n.In[0], e.Up))
	}
	if e.Joined() {
		x.gate.joined, x.up.joined, x.up.row = true, true, hidden.width
	}
	return x
}

func (b *binder) combine(n *ir.Node, out, weights place) rowOp {
	return &combineOp{out: out, weights: weights, used: n.Experts.Used, down: b.slots(n, b.layout.down(n)),
		before: n.Experts.Before}
}

// slots is the memory for rows that a pass leaves; those of one row of the step lie side by side.
func (b *binder) slots(n *ir.Node, buf *live.Buffer) slots {
	rows, _ := b.layout.bytes(buf)
	return slots{b.m.scratch[buf.Offset:][:rows/4], buf.Width / n.Experts.Used}
}

// stack is the matrices of a weight's experts.
func (b *binder) stack(r, bias ir.Ref, out slots) stack {
	w := &b.m.weights[r]
	return stack{ref: r, w: w.parts, groups: w.groups, out: out, bias: b.vector(bias)}
}
