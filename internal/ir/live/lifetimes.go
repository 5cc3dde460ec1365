package live

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Buffer is memory for rows of something, from the first phase that writes it to the last that reads it.
type Buffer struct {
	First, Last int  // phases, counted over all segments
	Width       int  // features of a row; of prepared rows: of the value they are made from
	Form        Form // 0: float32
	Wanted      bool // rows are the wanted ones
	Offset      int  // set by Place
}

// Buffers are all buffers that a program needs. Several values share one if each was computed over the one before.
type Buffers struct {
	All      []*Buffer
	values   *Values
	of       map[ir.Value]*Buffer // by root
	prepared map[Prepared]*Buffer
	left     map[*ir.Node][][]*Buffer // by pass
}

// Of returns the buffer of a value, and the feature where the value begins in it; nil if no phase reads or writes it.
func (b *Buffers) Of(v ir.Value) (buffer *Buffer, from int) {
	return b.of[b.values.Root[v]], b.values.From[v]
}

// Prepared is the buffer of prepared rows; nil for rows of form 0.
func (b *Buffers) Prepared(rows Prepared) *Buffer { return b.prepared[rows] }

// Left lists the buffers that a pass of an Experts leaves, in the order of Pass.Leaves.
func (b *Buffers) Left(n *ir.Node, pass int) []*Buffer { return b.left[n][pass] }

// Lifetimes finds the buffers that phases in this order need. Inside a phase, rows are at different items, so what one
// item reads is kept until the phase ends. What a segment hands on is kept until the segment's end, when it is copied
// for the device of the next one.
func Lifetimes(p *ir.Program, rules Rules, segments [][]Phase) *Buffers {
	l := lifetimes{
		Buffers: &Buffers{values: ValuesOf(p), of: map[ir.Value]*Buffer{}, prepared: map[Prepared]*Buffer{},
			left: map[*ir.Node][][]*Buffer{}},
		p: p, rules: rules, segments: segments,
	}
	l.findLast()
	l.takeIn()
	l.eachItem(l.item)
	l.handOn()
	return l.Buffers
}

type lifetimes struct {
	*Buffers
	p        *ir.Program
	rules    Rules
	segments [][]Phase
	last     map[ir.Value]int // by root: the number of the item that reads it last, or of the first of a later segment
}

// eachItem visits all items with their number and their phase's.
func (l *lifetimes) eachItem(visit func(number, at int, ph *Phase, it *Item)) {
	number, at := 0, 0
	for _, phases := range l.segments {
		for i := range phases {
			for j := range phases[i].Items {
				visit(number, at, &phases[i], &phases[i].Items[j])
				number++
			}
			at++
		}
	}
}

// findLast finds the last reader of each value. The end of a segment counts as a reader of what the segment hands on.
func (l *lifetimes) findLast() {
	l.last = map[ir.Value]int{}
	l.eachItem(func(number, _ int, _ *Phase, it *Item) {
		for _, v := range it.Reads() {
			l.last[l.values.Root[v]] = number
		}
	})
	number := 0
	for s, phases := range l.segments {
		for i := range phases {
			number += len(phases[i].Items)
		}
		for _, v := range l.p.Handed(s) {
			root := l.values.Root[v]
			l.last[root] = max(l.last[root], number)
		}
	}
}

// takeIn gives values that come from another device, all rows of them, a buffer from the first phase of the segment
// that reads them first.
func (l *lifetimes) takeIn() {
	at := 0
	for s, phases := range l.segments {
		for _, v := range l.p.Taken() {
			if l.of[v] == nil && reads(&l.p.Segments[s], v) {
				l.of[v] = l.add(Buffer{Width: l.p.Widths[v]}, at)
			}
		}
		at += len(phases)
	}
}

func reads(s *ir.Segment, v ir.Value) bool {
	return slices.ContainsFunc(s.Nodes, func(n ir.Node) bool { return slices.Contains(n.In, v) })
}

// handOn keeps the buffers of what a segment hands on until the segment's last phase.
func (l *lifetimes) handOn() {
	at := 0
	for s, phases := range l.segments {
		at += len(phases)
		for _, v := range l.p.Handed(s) {
			b, _ := l.Of(v)
			b.Last = max(b.Last, at-1)
		}
	}
}

// item extends the lives of what an item reads, and begins those of what it writes.
func (l *lifetimes) item(number, at int, ph *Phase, it *Item) {
	for _, v := range it.Reads() {
		b, _ := l.Of(v)
		b.Last = at
	}
	switch it.Verb {
	case Prepare:
		if it.Input.Form != 0 {
			b := Buffer{Width: l.p.Widths[it.Input.Value], Form: it.Input.Form, Wanted: ph.Wanted}
			l.prepared[it.Input] = l.add(b, at)
		}
	case ComputePass:
		l.pass(it.Node, it.Pass, at, ph.Wanted)
	case Compute:
		n := it.Node
		switch n.Op {
		case ir.Linear:
			l.meets(n.In[0], n.W, at)
		case ir.Experts:
			l.leavings(n, len(l.left[n]), at)
		}
		if l.inPlace(n, number) {
			l.of[n.Out] = l.of[n.In[0]]
		} else {
			l.of[n.Out] = l.add(Buffer{Width: l.p.Widths[n.Out], Wanted: ph.Wanted}, at)
		}
	}
}

// pass extends the lives of what pass i reads, and begins those of what it leaves.
func (l *lifetimes) pass(n *ir.Node, i, at int, wanted bool) {
	pass := l.rules.Passes(n)[i]
	for _, w := range pass.Matrices {
		l.meets(n.In[0], w, at)
	}
	l.leavings(n, i, at)
	var left []*Buffer
	for _, leaves := range pass.Leaves {
		left = append(left, l.add(Buffer{Width: leaves.Width, Wanted: wanted}, at))
	}
	l.left[n] = append(l.left[n], left)
}

// leavings extends the lives of what earlier passes left to pass i, or to the chain after all passes.
func (l *lifetimes) leavings(n *ir.Node, i, at int) {
	for j, pass := range l.rules.Passes(n)[:i] {
		for k, leaves := range pass.Leaves {
			if leaves.Until >= i {
				l.left[n][j][k].Last = at
			}
		}
	}
}

// meets extends the life of the prepared form of a value to a matrix that reads it.
func (l *lifetimes) meets(v ir.Value, w ir.Ref, at int) {
	if b := l.prepared[Prepared{v, l.rules.Form(w)}]; b != nil {
		b.Last = at
	}
}

func (l *lifetimes) add(b Buffer, at int) *Buffer {
	b.First, b.Last = at, at
	l.All = append(l.All, &b)
	return &b
}

// inPlace says whether a node may write over its first input: no later item reads that, and no other input is a part of
// it.
func (l *lifetimes) inPlace(n *ir.Node, number int) bool {
	if !l.rules.InPlace(n.Op) {
		return false
	}
	x := n.In[0]
	for _, v := range n.In[1:] {
		if v != x && l.values.Root[v] == x {
			return false
		}
	}
	return l.values.Root[x] == x && l.last[x] == number
}
