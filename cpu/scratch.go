package cpu

import (
	"slices"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// values is what compiling knows of a program's values; all slices are by ir.Value.
type values struct {
	written []bool // by the nodes scheduled so far
	wanted  []bool // rows are the wanted ones
	root    []ir.Value
	from    []int // a slice begins at this feature of its root

	prepared map[item]bool // by the items scheduled so far
	observed bool          // the inputs of products are wanted too
}

func newValues(p *ir.Bound) *values {
	n := len(p.Widths)
	v := &values{
		written: make([]bool, n), wanted: make([]bool, n), root: make([]ir.Value, n), from: make([]int, n),
		prepared: map[item]bool{},
	}
	for _, taken := range p.Taken() {
		v.root[taken], v.written[taken] = taken, true
	}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			v.root[n.Out] = n.Out
			if n.Op == ir.Slice {
				v.root[n.Out], v.from[n.Out] = v.root[n.In[0]], v.from[n.In[0]]+n.From
			}
			v.wanted[n.Out] = n.Op == ir.Rows || len(n.In) > 0 && v.wanted[n.In[0]]
		}
	}
	return v
}

// place is where rows of float32 lie: in the scratch memory, or in the caller's logits.
type place struct {
	logits             bool
	off, stride, width int // float32
}

// buffer is room for a value or its prepared form, from the first phase that writes to the last that reads it.
type buffer struct {
	place
	wanted      bool
	tiles       bool // and for Acts.Tiles behind
	first, last int  // phases, counted over the whole program
}

// prepared names activations in the form of a matrix product.
type prepared struct {
	value ir.Value
	form  kernels.Form
}

// room decides where everything lies. Buffers are shared over time, and an operation on single elements writes over its
// first input if nobody else reads that.
type room struct {
	p       *ir.Bound
	values  *values
	of      map[ir.Value]*buffer // by root
	experts map[*ir.Node]*expertBuffers
	acts    map[prepared]*buffer
	buffers []*buffer
	tiles   bool // prepared forms have Acts.Tiles
	size    int  // float32
}

// expertBuffers have room for all slots of an Experts node: a row of the step has used of them side by side.
type expertBuffers struct{ hidden, up, down *buffer }

// handed are the values that each segment hands on.
func makeRoom(p *ir.Bound, v *values, segments [][]phase, handed [][]ir.Value, c backend.Config, tiles bool) *room {
	r := &room{p: p, values: v, tiles: tiles, of: map[ir.Value]*buffer{}, acts: map[prepared]*buffer{},
		experts: map[*ir.Node]*expertBuffers{}}
	last := r.lastUses(segments)
	r.handOn(segments, handed, last)
	r.take(segments)
	r.assign(segments, last)
	r.keep(segments, handed)
	if out, n := p.Output, p.OutputWidth(); v.root[out] == out && r.of[out] != nil && r.of[out].width == n {
		r.of[out].place = place{logits: true, stride: n, width: n}
	}
	r.pack(c)
	return r
}

// eachItem visits all items with their number and their phase's.
func eachItem(segments [][]phase, visit func(number, phase int, ph *phase, it *item)) {
	number, at := 0, 0
	for _, phases := range segments {
		for i := range phases {
			for j := range phases[i].items {
				visit(number, at, &phases[i], &phases[i].items[j])
				number++
			}
			at++
		}
	}
}

// reads lists the values that an item reads as float32.
func (it *item) reads() []ir.Value {
	switch it.verb {
	case prepare:
		return []ir.Value{it.value}
	case store:
		return it.node.In[1:]
	}
	return it.node.In
}

// lastUses is the number of the last item that reads each root.
func (r *room) lastUses(segments [][]phase) map[ir.Value]int {
	last := map[ir.Value]int{}
	eachItem(segments, func(number, _ int, _ *phase, it *item) {
		for _, v := range it.reads() {
			last[r.values.root[v]] = number
		}
	})
	return last
}

// take gives values that come from elsewhere room from the first phase of the segment that reads them first.
func (r *room) take(segments [][]phase) {
	starts, at := make([]int, len(segments)), 0
	for s, phases := range segments {
		starts[s] = at
		at += len(phases)
	}
	for _, v := range r.p.Taken() {
		s := slices.IndexFunc(r.p.Segments, func(s ir.Segment) bool {
			return slices.ContainsFunc(s.Nodes, func(n ir.Node) bool { return slices.Contains(n.In, v) })
		})
		r.of[v] = r.add(r.p.Widths[v], r.values.wanted[v], starts[s])
	}
}

// handOn counts the end of a segment as a use of what it hands on: whoever computes the next one copies it then.
func (r *room) handOn(segments [][]phase, handed [][]ir.Value, last map[ir.Value]int) {
	number := 0
	for s, phases := range segments {
		for i := range phases {
			number += len(phases[i].items)
		}
		for _, v := range handed[s] {
			last[r.values.root[v]] = max(last[r.values.root[v]], number)
		}
	}
}

// keep has the buffers of what a segment hands on live until its last phase.
func (r *room) keep(segments [][]phase, handed [][]ir.Value) {
	at := 0
	for s, phases := range segments {
		at += len(phases)
		for _, v := range handed[s] {
			if b := r.of[r.values.root[v]]; b != nil {
				b.last = max(b.last, at-1)
			}
		}
	}
}

// assign gives every root and every prepared form a buffer, and finds how long each one lives.
func (r *room) assign(segments [][]phase, last map[ir.Value]int) {
	eachItem(segments, func(number, at int, ph *phase, it *item) {
		for _, v := range it.reads() {
			r.of[r.values.root[v]].last = at
		}
		switch {
		case it.verb == prepare && it.form != kernels.Plain:
			width := it.form.RowBytes(r.p.Widths[it.value]) / 4
			b := r.add(width, ph.wanted, at)
			b.tiles = r.tiles
			r.acts[prepared{it.value, it.form}] = b
		case it.verb == compute:
			n := it.node
			switch n.Op {
			case ir.Linear:
				r.meets(n.In[0], n.W, at)
			case ir.Experts:
				r.experts[n].down.last = at
			}
			if r.inPlace(n, number, last) {
				r.of[n.Out] = r.of[n.In[0]]
			} else {
				r.of[n.Out] = r.add(r.p.Widths[n.Out], ph.wanted, at)
			}
		case it.verb == expand:
			e := it.node.Experts
			r.meets(it.node.In[0], e.Gate, at)
			r.meets(it.node.In[0], e.Up, at)
			width := e.Used * r.p.Weights[e.Down].Cols
			r.experts[it.node] = &expertBuffers{hidden: r.add(width, ph.wanted, at), up: r.add(width, ph.wanted, at)}
		case it.verb == contract:
			b := r.experts[it.node]
			b.hidden.last = at
			b.down = r.add(it.node.Experts.Used*r.p.Widths[it.node.Out], ph.wanted, at)
		}
	})
}

// meets notes that a matrix reads the prepared form of a value.
func (r *room) meets(v ir.Value, w ir.Ref, at int) {
	if b := r.acts[prepared{v, kernels.FormOf(r.p.Types[w])}]; b != nil {
		b.last = at
	}
}

func (r *room) add(width int, wanted bool, at int) *buffer {
	b := &buffer{place: place{stride: width, width: width}, wanted: wanted, first: at, last: at}
	r.buffers = append(r.buffers, b)
	return b
}

// inPlace says whether a node may write over its first input.
func (r *room) inPlace(n *ir.Node, number int, last map[ir.Value]int) bool {
	switch n.Op {
	case ir.Norm, ir.RoPE, ir.GLU, ir.Add, ir.Mul, ir.Scale, ir.SoftCap:
		x := n.In[0]
		return r.values.root[x] == x && last[x] == number && r.p.Widths[x] == r.p.Widths[n.Out]
	}
	return false
}

// pack places the buffers, first fit, so that none overlap while they live. Freed room is used again from the next
// phase on only: inside a phase rows are at different items.
func (r *room) pack(c backend.Config) {
	slices.SortStableFunc(r.buffers, func(a, b *buffer) int { return a.first - b.first }) // those taken in came first
	var live []*buffer                                                                    // by offset
	for _, b := range r.buffers {
		if b.logits {
			continue
		}
		live = slices.DeleteFunc(live, func(o *buffer) bool { return o.last < b.first })
		size, at, i := b.floats(c), 0, 0
		for ; i < len(live) && live[i].off < at+size; i++ {
			at = live[i].off + live[i].floats(c)
		}
		b.off = at
		live = slices.Insert(live, i, b)
		r.size = max(r.size, at+size)
	}
}

// floats is a buffer's size, in whole cache lines.
func (b *buffer) floats(c backend.Config) int {
	rows, tiles := b.bytes(c)
	return (rows + tiles) / 4
}

// bytes is what a buffer has for rows, and behind them for Acts.Tiles.
func (b *buffer) bytes(c backend.Config) (rows, tiles int) {
	n := c.MaxRows
	if b.wanted {
		n = c.MaxWanted
	}
	if b.tiles {
		tiles = align(kernels.TileBytes(n, 4*b.stride))
	}
	return align(4 * n * b.stride), tiles
}

// borders are the places of values that come from other segments or go to them.
func (r *room) borders(handed [][]ir.Value) map[ir.Value]place {
	at := map[ir.Value]place{}
	for _, v := range append(slices.Concat(handed...), r.p.Taken()...) {
		if r.of[r.values.root[v]] != nil {
			at[v] = r.place(v)
		}
	}
	return at
}

// place is where a value lies.
func (r *room) place(v ir.Value) place {
	pl := r.of[r.values.root[v]].place
	pl.off += r.values.from[v]
	pl.width = r.p.Widths[v]
	return pl
}
