//go:build cgo && linux

package vulkan

import (
	"encoding/binary"

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

// layExperts takes memory for the matrices of an Experts: gate and up in turn, if they are alike, and down.
func (m *model) layExperts(p *ir.Bound, n *ir.Node) error {
	e := n.Experts
	all := [][]ir.Ref{{e.Gate, e.Up}, {e.Down}}
	if p.Types[e.Gate] != p.Types[e.Up] || (e.GateBias == ir.NoRef) != (e.UpBias == ir.NoRef) {
		all = [][]ir.Ref{{e.Gate}, {e.Up}, {e.Down}}
	}
	for _, refs := range all {
		w := &p.Weights[refs[0]]
		x, err := NewMatrix(p.Types[refs[0]], w.Rows/w.Experts, w.Cols, len(refs) == 2)
		if err != nil {
			return err
		}
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
	host, err := m.device.d.Allocate(vk.Staging, uint64(8*experts))
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
	x, experts := l.place(n.In[0]), l.p.Widths[n.Out]
	list := func() *live.Buffer {
		return l.buffer(live.Buffer{Form: asBlob, Width: 4 * n.Route.Used * l.m.capacity(l.wanted)})
	}
	c := &chosen{ids: list(), weights: list(), used: n.Route.Used, segment: l.segment}
	l.choices[n.Out] = c
	y, bias := l.put(n), l.m.vector(n.B)
	writes := []*live.Buffer{c.ids, c.weights, y.b}
	l.launch(launch{reads: []*live.Buffer{x.b}, writes: writes, record: func(r *recorder) error {
		return r.k.Route(r.r, &Route{Args: n.Route, Experts: experts, Logits: r.at(x), Bias: bias, XStride: stride(x.b),
			IDs: r.at(place{b: c.ids}), Weights: r.at(place{b: c.weights}), Dense: r.at(y), DenseStride: stride(y.b),
			Rows: r.n, Count: r.count(0)})
	}})
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
	c := l.choices[n.In[1]]
	e, rows := n.Experts, l.m.capacity(l.wanted)
	gate, down := l.m.experts[e.Gate], l.m.experts[e.Down]
	pairs, experts := rows*e.Used, l.p.Weights[e.Gate].Experts
	blob := func(bytes int) *live.Buffer { return l.buffer(live.Buffer{Form: asBlob, Width: bytes}) }
	if l.parted = l.m.weights[e.Gate].moves; l.parted {
		l.m.routes[c.segment], l.m.routeOf[l.segment] = c, c.segment
	}
	lists := blob(int(GroupBytes(experts, pairs)))
	l.launch(launch{reads: []*live.Buffer{c.ids}, writes: []*live.Buffer{lists},
		idle: func(x *recorder) bool { return x.n == 1 },
		record: func(x *recorder) error {
			return x.k.Group(x.r, x.ids(c), x.at(place{b: lists}), experts, x.n*e.Used)
		}})
	choice := func(x *recorder, share int) *Choice {
		if x.n == 1 {
			return &Choice{List: x.ids(c), Entries: e.Used, Share: share}
		}
		return &Choice{List: x.at(place{b: lists}), Entries: GroupEntries(experts, x.n*e.Used), Grouped: true, Share: share}
	}
	hidden, ffn := blob(pairs*4*PaddedWidth(gate.Rows)), gate.Rows
	expand := func(w *Matrix, v MatVec, to *live.Buffer) {
		in := l.taken(n, w)
		v.W, v.YStride, v.XStride = w, PaddedWidth(ffn), PaddedWidth(w.Cols)
		reads := []*live.Buffer{in.b, c.ids, lists}
		l.launch(launch{reads: reads, writes: []*live.Buffer{to}, record: func(x *recorder) error {
			v := v
			v.W = x.matrix(v.W)
			v.Experts, v.X, v.Y = choice(x, e.Used), x.row(in.b, 0), x.at(place{b: to})
			v.Columns = v.Experts.columns()
			return x.k.MatVec(x.r, &v)
		}})
	}
	if gate.Pair {
		expand(gate, MatVec{Glue: SwiGLU, Act: n.Act, Bias: l.m.vector(e.GateBias), UpBias: l.m.vector(e.UpBias)}, hidden)
	} else {
		up := blob(pairs * 4 * PaddedWidth(ffn))
		expand(gate, MatVec{Bias: l.m.vector(e.GateBias)}, hidden)
		expand(l.m.experts[e.Up], MatVec{Bias: l.m.vector(e.UpBias)}, up)
		l.launch(launch{reads: []*live.Buffer{up, hidden}, writes: []*live.Buffer{hidden}, record: func(x *recorder) error {
			return x.k.Each(x.r, &Each{Formula: Gate, Act: n.Act, A: x.at(place{b: hidden}), B: x.at(place{b: up}),
				Y: x.at(place{b: hidden}), AStride: PaddedWidth(ffn), BStride: PaddedWidth(ffn), YStride: PaddedWidth(ffn),
				Width: ffn, Rows: x.n * e.Used})
		}})
	}
	ready := l.ready(hidden, ffn, pairs, e.Used, !down.float())
	out := blob(pairs * 4 * PaddedWidth(down.Rows))
	second := MatVec{W: down, XStride: PaddedWidth(ffn), YStride: PaddedWidth(down.Rows), Bias: l.m.vector(e.DownBias)}
	reads := []*live.Buffer{ready, c.ids, lists}
	l.launch(launch{reads: reads, writes: []*live.Buffer{out}, record: func(x *recorder) error {
		v := second
		v.W = x.matrix(v.W)
		v.Experts, v.X, v.Y = choice(x, 1), x.at(place{b: ready}), x.at(place{b: out})
		v.Columns = v.Experts.columns()
		return x.k.MatVec(x.r, &v)
	}})
	l.parted = false
	y := l.put(n)
	l.launch(launch{reads: []*live.Buffer{out, c.weights}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		return x.k.Combine(x.r, &Combine{X: x.at(place{b: out}), Weights: x.at(place{b: c.weights}), Y: x.at(y),
			XStride: PaddedWidth(down.Rows), YStride: stride(y.b), Width: l.p.Widths[n.Out], Used: e.Used, Rows: x.n,
			Count: x.count(0)})
	}})
}

// ready brings what gate and up left to the form that down takes.
func (l *planner) ready(hidden *live.Buffer, width, pairs, used int, bytes bool) *live.Buffer {
	if !bytes && width%tileCols == 0 {
		return hidden
	}
	b := l.buffer(live.Buffer{Form: asBlob, Width: pairs * 4 * PaddedWidth(width)})
	l.launch(launch{reads: []*live.Buffer{hidden}, writes: []*live.Buffer{b}, record: func(x *recorder) error {
		return x.k.Norm(x.r, &Norm{X: x.at(place{b: hidden}), Y: x.at(place{b: b}), Width: width,
			XStride: PaddedWidth(width), Stride: PaddedWidth(width), Rows: x.n * used, Quantise: bytes})
	}})
	return b
}
