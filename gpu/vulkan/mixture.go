//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"fmt"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// chosen is where a route leaves its choice.
type chosen struct {
	ids, weights *live.Buffer
	used         int
	segment      int
}

// layExperts takes memory for the matrices of an Experts: gate and up in turn, if they are alike or one, and down.
func (m *model) layExperts(p *ir.Bound, n *ir.Node) error {
	e := n.Experts
	all := [][]ir.Ref{{e.Gate, e.Up}, {e.Down}}
	if e.Joined() {
		all[0] = all[0][:1]
	} else if p.Types[e.Gate] != p.Types[e.Up] || (e.GateBias == ir.NoRef) != (e.UpBias == ir.NoRef) {
		all = [][]ir.Ref{{e.Gate}, {e.Up}, {e.Down}}
	}
	for _, refs := range all {
		w, joined := &p.Weights[refs[0]], e.Joined() && refs[0] == e.Gate
		rows := w.Rows / w.Experts
		if joined {
			rows /= 2
		}
		x, err := NewMatrix(p.Types[refs[0]], rows, w.Cols, joined || len(refs) == 2)
		switch {
		case err != nil:
			return err
		case rows%tileRows != 0:
			return fmt.Errorf("%s: experts of %d features: %w on Vulkan, want a multiple of %d: use --device cpu", w.Name,
				rows, errNoKernel, tileRows)
		}
		m.weights[refs[0]].joined = joined
		if m.weights[refs[0]].moves {
			m.joinExperts(&x, refs, w.Experts)
			continue
		}
		size := aligned(x.Bytes())
		memory, err := m.memory.take(vk.Local, size*uint64(w.Experts), w.Name)
		if err != nil {
			return err
		}
		m.account.Weights += int64(memory.Size)
		x.Address = memory.Address
		for i, r := range refs {
			t := &m.weights[r]
			t.matrix, t.up, t.each, t.apart = &x, i == 1, x.Rows, size
		}
		if err := m.layAddresses(refs[0], x, size, w.Experts); err != nil {
			return err
		}
	}
	return nil
}

// joinExperts lays a matrix, or a pair, of experts that move. Their addresses come with each part of the segment: in
// the order of its tables, of which this is the next.
func (m *model) joinExperts(x *Matrix, refs []ir.Ref, experts int) {
	w := &m.weights[refs[0]]
	for e := range experts {
		m.join(w.group+e, x, refs...)
	}
	for i, r := range refs {
		t := &m.weights[r]
		t.matrix, t.up, t.each = x, i == 1, x.Rows
	}
	table := *x
	m.spots[&table] = spot{absent, uint64(8 * experts * w.part)}
	m.experts[refs[0]] = &table
}

// layAddresses lists the experts' matrices for kernels.
func (m *model) layAddresses(r ir.Ref, x Matrix, apart uint64, experts int) error {
	table, err := m.memory.take(vk.Local, uint64(8*experts), "addresses")
	if err != nil {
		return err
	}
	host, err := allocate(m.device.d, vk.Staging, uint64(8*experts), "addresses")
	if err != nil {
		return err
	}
	defer m.device.d.Free(host)
	for e := range experts {
		binary.LittleEndian.PutUint64(host.Bytes[8*e:], x.Address+uint64(e)*apart)
	}
	x.Address = table.Address
	m.experts[r] = &x
	return m.device.queue.once(func(rec *vk.Recording) error {
		rec.Copy(table, 0, host, 0, uint64(8*experts))
		rec.BarrierAll()
		return nil
	})
}

// route plans a choice: a list for products, and the row of weights that the program knows.
func (l *planner) route(n *ir.Node) {
	x, experts, c := l.place(n.In[0]), l.p.Widths[n.Out], l.choice(n.Out, n.Route.Used)
	y, bias, factors := l.put(n), l.m.vector(n.B), l.m.vector(n.W)
	writes := []*live.Buffer{c.ids, c.weights, y.b}
	l.launch(launch{reads: []*live.Buffer{x.b}, writes: writes, record: func(r *recorder) error {
		return r.k.Route(r.r, &Route{Args: n.Route, Experts: experts, Logits: r.at(x), Bias: bias, Factors: factors, XStride: stride(x.b),
			IDs: r.at(place{b: c.ids}), Weights: r.at(place{b: c.weights}), Dense: r.at(y), DenseStride: stride(y.b),
			Rows: r.n, Count: r.count(0)})
	}})
}

// choice is where a choice of so many experts goes.
func (l *planner) choice(weights ir.Value, used int) *chosen {
	list := func() *live.Buffer { return l.blob(4 * used * l.m.capacity(l.wanted)) }
	c := &chosen{ids: list(), weights: list(), used: used, segment: l.segment}
	l.choices[weights] = c
	return c
}

// listed is the choice that an Experts goes by: where its route is not computed here, it is listed from the weights.
func (l *planner) listed(n *ir.Node) *chosen {
	if c := l.choices[n.In[1]]; c != nil {
		return c
	}
	a, c := l.place(n.In[1]), l.choice(n.In[1], n.Experts.Used)
	t := Route{Experts: l.p.Widths[n.In[1]], DenseStride: stride(a.b)}
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{c.ids, c.weights}, record: func(x *recorder) error {
		t := t
		t.Dense, t.IDs, t.Weights = x.at(a), x.at(place{b: c.ids}), x.at(place{b: c.weights})
		t.Rows, t.Count = x.n, x.count(0)
		return x.k.Chosen(x.r, &t, c.used)
	}})
	return c
}

// ids is the list of pairs that a recording takes: all of a choice, or those of a part.
func (x *recorder) ids(c *chosen) uint64 {
	if x.region != nil {
		return x.region.list()
	}
	return x.at(place{b: c.ids})
}

// mixture plans the chosen experts of all rows, and their sum.
func (l *planner) mixture(n *ir.Node) {
	e, rows := n.Experts, l.m.capacity(l.wanted)
	x := &mixed{n: n, choice: l.listed(n), pairs: rows * e.Used, experts: l.p.Weights[e.Gate].Experts,
		weighed: map[live.Form]*input{}}
	x.size = GroupedColumns
	for _, w := range []ir.Ref{e.Gate, e.Up, e.Down} {
		if m := l.m.experts[w]; m != nil {
			x.size = min(x.size, l.m.device.kernels.Gathers(m, e.GateBias != ir.NoRef || e.DownBias != ir.NoRef))
		}
	}
	x.lists = l.blob(int(max(GroupBytes(x.experts, x.pairs, x.size), GroupBytes(x.experts, x.pairs, MaxColumns))))
	if l.parted = l.m.weights[e.Gate].moves; l.parted {
		l.m.routes[x.choice.segment], l.m.routeOf[l.segment] = x.choice, x.choice.segment
	}
	l.launch(launch{reads: []*live.Buffer{x.choice.ids}, writes: []*live.Buffer{x.lists},
		idle: func(r *recorder) bool { return r.n == 1 },
		record: func(r *recorder) error {
			return r.k.Group(r.r, r.ids(x.choice), r.at(place{b: x.lists}), x.experts, r.n*e.Used, x.gathered(r))
		}})
	if e.Before {
		l.weigh(x)
	}
	l.reduce(x, l.expand(x))
}

// weigh plans the rows of pairs where experts take them weighed, in the forms that their matrices take.
func (l *planner) weigh(x *mixed) {
	a, e, width := l.place(x.n.In[0]), x.n.Experts, l.p.Widths[x.n.In[0]]
	rows, wide := l.blob(x.pairs*4*PaddedWidth(width)), PaddedWidth(width)
	l.launch(launch{reads: []*live.Buffer{a.b, x.choice.weights}, writes: []*live.Buffer{rows},
		record: func(r *recorder) error {
			return r.k.Each(r.r, &Each{Formula: Product, A: r.at(a), AStride: stride(a.b), Share: e.Used,
				B: r.at(place{b: x.choice.weights}), BStride: 1, BWidth: 1, Y: r.at(place{b: rows}), YStride: wide,
				Width: width, Filled: wide, Rows: r.n * e.Used})
		}})
	for _, r := range []ir.Ref{e.Gate, e.Up} {
		form := rulesOf(l.p).Form(r)
		if x.weighed[form] == nil {
			x.weighed[form] = &input{b: l.ready(rows, width, x.pairs, e.Used, form == inBytes)}
		}
	}
}

// mixed is an Experts with its choice.
type mixed struct {
	n              *ir.Node
	choice         *chosen
	lists          *live.Buffer         // Group's
	pairs, experts int                  // at most; in all
	size           int                  // of entries where rows are many
	weighed        map[live.Form]*input // what gate and up take of pairs, if experts take rows weighed
}

// gathered is the size of entries: small ones would idle in kernels for many columns.
func (x *mixed) gathered(r *recorder) int {
	if pairs := r.n * x.n.Experts.Used; pairs < 4*x.experts || r.n <= fewColumns {
		return MaxColumns
	}
	return x.size
}

func (l *planner) blob(bytes int) *live.Buffer {
	return l.buffer(live.Buffer{Form: asBlob, Width: bytes})
}

// of is the choice for products: of pairs one by one where there is one row, else gathered.
func (x *mixed) of(r *recorder, share int) *Choice {
	used := x.n.Experts.Used
	if r.n == 1 {
		return &Choice{List: r.ids(x.choice), Entries: used, Share: share}
	}
	size := x.gathered(r)
	return &Choice{List: r.at(place{b: x.lists}), Entries: GroupEntries(x.experts, r.n*used, size), Grouped: size,
		Share: share}
}

// expand plans gate and up of all pairs, and returns where what down takes of them lies.
func (l *planner) expand(x *mixed) *live.Buffer {
	e, gate, down := x.n.Experts, l.m.experts[x.n.Experts.Gate], l.m.experts[x.n.Experts.Down]
	ffn := PaddedWidth(gate.Rows)
	v := MatVec{Bias: l.m.vector(e.GateBias)}
	if gate.Pair {
		v.Glue, v.Act, v.UpBias = SwiGLU, x.n.Act, l.m.vector(e.UpBias)
		if !down.float() {
			v.Glue = SwiGLUToInt8
			hidden := l.blob(x.pairs * QuantisedBytes(gate.Rows))
			l.expandBy(x, gate, v, hidden)
			return hidden
		}
	}
	hidden := l.blob(x.pairs * 4 * ffn)
	l.expandBy(x, gate, v, hidden)
	if !gate.Pair {
		up := l.blob(x.pairs * 4 * ffn)
		l.expandBy(x, l.m.experts[e.Up], MatVec{Bias: l.m.vector(e.UpBias)}, up)
		l.launch(launch{reads: []*live.Buffer{up, hidden}, writes: []*live.Buffer{hidden}, record: func(r *recorder) error {
			return r.k.Each(r.r, &Each{Formula: Gate, Act: x.n.Act, A: r.at(place{b: hidden}), B: r.at(place{b: up}),
				Y: r.at(place{b: hidden}), AStride: ffn, BStride: ffn, YStride: ffn, Width: gate.Rows, Rows: r.n * e.Used})
		}})
	}
	return l.ready(hidden, gate.Rows, x.pairs, e.Used, !down.float())
}

// expandBy plans the products of a matrix with what goes into the experts.
func (l *planner) expandBy(x *mixed, w *Matrix, v MatVec, to *live.Buffer) {
	in, share := x.weighed[formOf(w)], 1
	if in == nil {
		in, share = l.taken(x.n, w, x.n.Experts.Used), x.n.Experts.Used
	}
	v.W, v.YStride = w, PaddedWidth(w.Rows)
	reads := append(in.reads(), x.choice.ids, x.lists)
	l.launch(launch{reads: reads, writes: []*live.Buffer{to}, record: func(r *recorder) error {
		v := v
		v.W = r.matrix(v.W)
		r.give(&v, in)
		v.Experts, v.Y = x.of(r, share), r.at(place{b: to})
		v.Columns = v.Experts.columns()
		return r.k.MatVec(r.r, &v)
	}})
}

// reduce plans down and the sum of rows, for one row by one kernel, with what it is added to. The bits are the same.
// Of experts that come in parts, the sum waits for all of them.
func (l *planner) reduce(x *mixed, hidden *live.Buffer) {
	out := l.blob(x.pairs * 4 * PaddedWidth(l.m.experts[x.n.Experts.Down].Rows))
	reads := []*live.Buffer{hidden, x.choice.ids, x.lists}
	if l.parted {
		l.launch(launch{reads: reads, writes: []*live.Buffer{out}, record: func(r *recorder) error {
			v := x.down(r, hidden, out)
			return r.k.MatVec(r.r, &v)
		}})
		l.parted = false
		y := l.putAlone(x.n)
		l.launch(launch{reads: []*live.Buffer{out, x.choice.weights}, writes: []*live.Buffer{y.b},
			record: func(r *recorder) error {
				c := x.sum(r, out, y, nil)
				return r.k.Combine(r.r, &c)
			}})
		return
	}
	y, residual := l.putSum(x.n)
	reads = append(reads, x.choice.weights)
	if residual != nil {
		reads = append(reads, residual.b)
	}
	l.launch(launch{reads: reads, writes: []*live.Buffer{out, y.b}, record: func(r *recorder) error {
		c, v := x.sum(r, out, y, residual), x.down(r, hidden, out)
		if r.n == 1 && !x.n.Experts.Before {
			s := v
			s.Experts = &Choice{List: v.Experts.List, Entries: 1, Share: c.Used, Shares: c.Weights}
			s.Y, s.YStride, s.Residual = c.Y, c.YStride, c.Residual
			if r.k.Fits(&s) {
				return r.k.MatVec(r.r, &s)
			}
		}
		if err := r.k.MatVec(r.r, &v); err != nil {
			return err
		}
		r.r.Barrier()
		return r.k.Combine(r.r, &c)
	}})
}

// down is the product that makes a row of each pair.
func (x *mixed) down(r *recorder, hidden, out *live.Buffer) MatVec {
	w := r.m.experts[x.n.Experts.Down]
	v := MatVec{W: r.matrix(w), XStride: PaddedWidth(w.Cols), YStride: PaddedWidth(w.Rows),
		Bias: r.m.vector(x.n.Experts.DownBias), Experts: x.of(r, 1), X: r.at(place{b: hidden}), Y: r.at(place{b: out})}
	v.Columns = v.Experts.columns()
	return v
}

// sum is the sum of each row's pairs.
func (x *mixed) sum(r *recorder, out *live.Buffer, y place, residual *place) Combine {
	down := r.m.experts[x.n.Experts.Down]
	c := Combine{X: r.at(place{b: out}), Weights: r.at(place{b: x.choice.weights}), Y: r.at(y),
		XStride: PaddedWidth(down.Rows), YStride: stride(y.b), Width: r.m.program.Widths[x.n.Out],
		Used: x.n.Experts.Used, Rows: r.n, Count: r.count(0)}
	if residual != nil {
		c.Residual = r.at(*residual)
	}
	if x.n.Experts.Before {
		c.Weights = 0
	}
	return c
}

// ready brings what gate and up left to the form that down takes.
func (l *planner) ready(hidden *live.Buffer, width, pairs, used int, bytes bool) *live.Buffer {
	if !bytes && width%tileCols == 0 {
		return hidden
	}
	b := l.blob(pairs * 4 * PaddedWidth(width))
	l.launch(launch{reads: []*live.Buffer{hidden}, writes: []*live.Buffer{b}, record: func(x *recorder) error {
		return x.k.Norm(x.r, &Norm{X: x.at(place{b: hidden}), Y: x.at(place{b: b}), Width: width,
			XStride: PaddedWidth(width), Stride: PaddedWidth(width), Rows: x.n * used, Quantise: bytes})
	}})
	return b
}
