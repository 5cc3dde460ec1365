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

// preparedKey names activations in the form of a matrix product.
type preparedKey struct {
	value ir.Value
	form  kernels.Form
}

// layout decides where everything lies. Buffers are shared over time, and an operation on single elements writes over
// its first input if nobody else reads that.
type layout struct {
	p       *ir.Bound
	values  *values
	of      map[ir.Value]*buffer // by root
	experts map[*ir.Node]*expertBuffers
	acts    map[preparedKey]*buffer
	buffers []*buffer
	tiles   bool // prepared forms have Acts.Tiles
	size    int  // float32
}

// expertBuffers have room for all slots of an Experts node: a row of the step has used of them side by side.
type expertBuffers struct{ hidden, up, down *buffer }

// handed are the values that each segment hands on.
func newLayout(p *ir.Bound, v *values, segments [][]phase, handed [][]ir.Value, c backend.Config, tiles bool) *layout {
	l := &layout{p: p, values: v, tiles: tiles, of: map[ir.Value]*buffer{}, acts: map[preparedKey]*buffer{},
		experts: map[*ir.Node]*expertBuffers{}}
	last := l.lastUses(segments)
	l.handOn(segments, handed, last)
	l.take(segments)
	l.assign(segments, last)
	l.keep(segments, handed)
	if out, n := p.Output, p.OutputWidth(); v.root[out] == out && l.of[out] != nil && l.of[out].width == n {
		l.of[out].place = place{logits: true, stride: n, width: n}
	}
	l.pack(c)
	return l
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
func (l *layout) lastUses(segments [][]phase) map[ir.Value]int {
	last := map[ir.Value]int{}
	eachItem(segments, func(number, _ int, _ *phase, it *item) {
		for _, v := range it.reads() {
			last[l.values.root[v]] = number
		}
	})
	return last
}

// take gives values that come from elsewhere room from the first phase of the segment that reads them first.
func (l *layout) take(segments [][]phase) {
	starts, at := make([]int, len(segments)), 0
	for s, phases := range segments {
		starts[s] = at
		at += len(phases)
	}
	for _, v := range l.p.Taken() {
		s := slices.IndexFunc(l.p.Segments, func(s ir.Segment) bool {
			return slices.ContainsFunc(s.Nodes, func(n ir.Node) bool { return slices.Contains(n.In, v) })
		})
		l.of[v] = l.add(l.p.Widths[v], l.values.wanted[v], starts[s])
	}
}

// handOn counts the end of a segment as a use of what it hands on: whoever computes the next one copies it then.
func (l *layout) handOn(segments [][]phase, handed [][]ir.Value, last map[ir.Value]int) {
	number := 0
	for s, phases := range segments {
		for i := range phases {
			number += len(phases[i].items)
		}
		for _, v := range handed[s] {
			last[l.values.root[v]] = max(last[l.values.root[v]], number)
		}
	}
}

// keep has the buffers of what a segment hands on live until its last phase.
func (l *layout) keep(segments [][]phase, handed [][]ir.Value) {
	at := 0
	for s, phases := range segments {
		at += len(phases)
		for _, v := range handed[s] {
			if b := l.of[l.values.root[v]]; b != nil {
				b.last = max(b.last, at-1)
			}
		}
	}
}

// assign gives every root and every prepared form a buffer, and finds how long each one lives.
func (l *layout) assign(segments [][]phase, last map[ir.Value]int) {
	eachItem(segments, func(number, at int, ph *phase, it *item) {
		for _, v := range it.reads() {
			l.of[l.values.root[v]].last = at
		}
		switch {
		case it.verb == prepare && it.form != kernels.Plain:
			width := it.form.RowBytes(l.p.Widths[it.value]) / 4
			b := l.add(width, ph.wanted, at)
			b.tiles = l.tiles
			l.acts[preparedKey{it.value, it.form}] = b
		case it.verb == compute:
			n := it.node
			switch n.Op {
			case ir.Linear:
				l.meets(n.In[0], n.W, at)
			case ir.Experts:
				l.experts[n].down.last = at
			}
			if l.inPlace(n, number, last) {
				l.of[n.Out] = l.of[n.In[0]]
			} else {
				l.of[n.Out] = l.add(l.p.Widths[n.Out], ph.wanted, at)
			}
		case it.verb == expand:
			e := it.node.Experts
			l.meets(it.node.In[0], e.Gate, at)
			l.meets(it.node.In[0], e.Up, at)
			width := e.Used * l.p.Weights[e.Down].Cols
			l.experts[it.node] = &expertBuffers{hidden: l.add(width, ph.wanted, at), up: l.add(width, ph.wanted, at)}
		case it.verb == contract:
			b := l.experts[it.node]
			b.hidden.last = at
			b.down = l.add(it.node.Experts.Used*l.p.Widths[it.node.Out], ph.wanted, at)
		}
	})
}

// meets notes that a matrix reads the prepared form of a value.
func (l *layout) meets(v ir.Value, w ir.Ref, at int) {
	if b := l.acts[preparedKey{v, kernels.FormOf(l.p.Types[w])}]; b != nil {
		b.last = at
	}
}

func (l *layout) add(width int, wanted bool, at int) *buffer {
	b := &buffer{place: place{stride: width, width: width}, wanted: wanted, first: at, last: at}
	l.buffers = append(l.buffers, b)
	return b
}

// inPlace says whether a node may write over its first input.
func (l *layout) inPlace(n *ir.Node, number int, last map[ir.Value]int) bool {
	switch n.Op {
	case ir.Norm, ir.RoPE, ir.GLU, ir.Add, ir.Mul, ir.Scale, ir.SoftCap:
		x := n.In[0]
		return l.values.root[x] == x && last[x] == number && l.p.Widths[x] == l.p.Widths[n.Out]
	}
	return false
}

// pack places the buffers, first fit, so that none overlap while they live. Freed room is used again from the next
// phase on only: inside a phase rows are at different items.
func (l *layout) pack(c backend.Config) {
	slices.SortStableFunc(l.buffers, func(a, b *buffer) int { return a.first - b.first }) // those taken in came first
	var live []*buffer                                                                    // by offset
	for _, b := range l.buffers {
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
		l.size = max(l.size, at+size)
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
func (l *layout) borders(handed [][]ir.Value) map[ir.Value]place {
	at := map[ir.Value]place{}
	for _, v := range append(slices.Concat(handed...), l.p.Taken()...) {
		if l.of[l.values.root[v]] != nil {
			at[v] = l.place(v)
		}
	}
	return at
}

// place is where a value lies.
func (l *layout) place(v ir.Value) place {
	pl := l.of[l.values.root[v]].place
	pl.off += l.values.from[v]
	pl.width = l.p.Widths[v]
	return pl
}
