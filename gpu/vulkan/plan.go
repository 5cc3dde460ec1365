//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// Forms of what products take. Blobs are no rows: what a kernel leaves for another one, Width bytes in all.
const (
	inFloats live.Form = iota + 1 // float32, zero up to whole 256
	inBytes
	asBlob
)

// rulesOf are those of a GPU: all but attention is computed row by row, and products take their own forms.
func rulesOf(p *ir.Bound) live.Rules {
	return live.Rules{
		ByRow:   func(op ir.Op) bool { return op != ir.Attend },
		InPlace: func(ir.Op) bool { return false }, // planning looks for itself
		Form: func(w ir.Ref) live.Form {
			if integers(p.Types[w]) {
				return inBytes
			}
			return inFloats
		},
		Passes: func(n *ir.Node) []live.Pass { // all of it is planned at the end: they only say what it takes
			if n.Experts.Before {
				return nil // each expert takes rows of its own
			}
			return []live.Pass{{Matrices: []ir.Ref{n.Experts.Gate, n.Experts.Up}}}
		},
	}
}

// place is where a value lies: from a float32 on in each row of a buffer.
type place struct {
	b    *live.Buffer
	from int
}

// stride of a buffer's rows, in float32.
func stride(b *live.Buffer) int { return PaddedWidth(b.Width) }

// bytesOf is the size of a buffer for so many rows.
func bytesOf(b *live.Buffer, rows int) int {
	switch b.Form {
	case asBlob:
		return b.Width
	case inBytes:
		return rows * QuantisedBytes(b.Width)
	}
	return rows * 4 * stride(b)
}

// launch is one or a few dispatches that need no barrier but those within.
type launch struct {
	segment       int
	wanted        bool // rows are the wanted ones
	reads, writes []*live.Buffer
	columns       span                   // of the rows of the first that it writes, all that it does; none: all of them
	idle          func(x *recorder) bool // nil: never
	record        func(x *recorder) error

	piece  int  // of what, plus one: the group that it computes with, of a matrix that moves in pieces
	parted bool // it is there for each part of a segment of experts that move
}

// input is the rows that products take: prepared, or normalised by the products themselves.
type input struct {
	b        *live.Buffer
	norm     *ir.Node // nil: none
	x        place    // of the norm
	products []product
}

// product is a matrix, or experts' of one shape, so many for a row.
type product struct {
	w     *Matrix
	times int
}

// planner turns nodes into launches.
type planner struct {
	*fusion
	m        *model
	values   *live.Values
	of       map[ir.Value]place // by root
	rows     map[*row]*live.Buffer
	inputs   map[live.Prepared]*input
	done     map[*ir.Node]bool
	launches []launch
	buffers  []*live.Buffer
	segment  int
	wanted   bool
	piece    int // of launches that are planned
	parted   bool
	choices  map[ir.Value]*chosen // by route
}

// plan makes the launches of all segments and places what they leave.
func plan(m *model, p *ir.Bound, f *fusion) error {
	l := &planner{fusion: f, m: m, values: live.ValuesOf(p.Program), of: map[ir.Value]place{},
		rows: map[*row]*live.Buffer{}, inputs: map[live.Prepared]*input{}, choices: map[ir.Value]*chosen{},
		done: map[*ir.Node]bool{}}
	for s, phases := range live.Order(p.Program, rulesOf(p)) {
		l.segment = s
		l.takeIn(s)
		first := len(l.launches)
		for i := range phases {
			l.wanted = phases[i].Wanted
			for j := range phases[i].Items {
				if err := l.item(&phases[i].Items[j]); err != nil {
					return fmt.Errorf("%s: %w", &p.Segments[s], err)
				}
			}
		}
		l.handOn(s, first)
	}
	for i := range l.launches {
		for _, b := range slices.Concat(l.launches[i].reads, l.launches[i].writes) {
			b.First, b.Last = min(b.First, i), max(b.Last, i)
		}
	}
	m.launches = l.launches
	m.divide(len(p.Segments))
	m.scratchBytes = live.Place(l.buffers, func(b *live.Buffer) int {
		return (bytesOf(b, m.capacity(b.Wanted)) + 255) &^ 255
	})
	m.borders = l.of
	return nil
}

// takeIn gives values that may come from elsewhere a place, from the segment that reads them on.
func (l *planner) takeIn(s int) {
	for _, v := range l.p.Only([]int{s}).Taken() {
		if _, ok := l.of[v]; !ok {
			b := l.buffer(live.Buffer{Width: l.p.Widths[v]})
			b.First = len(l.launches)
			l.of[v] = place{b: b}
		}
	}
}

// handOn keeps what a segment hands on until its end.
func (l *planner) handOn(s, first int) {
	last := len(l.launches) - 1
	for _, v := range l.p.Handed(s) {
		if pl, ok := l.of[l.values.Root[v]]; ok && last >= first {
			pl.b.Last = max(pl.b.Last, last)
		}
	}
}

func (l *planner) buffer(b live.Buffer) *live.Buffer {
	b.First, b.Last, b.Wanted = len(l.launches), len(l.launches), l.wanted
	l.buffers = append(l.buffers, &b)
	return &b
}

func (l *planner) launch(x launch) {
	x.segment, x.wanted, x.piece, x.parted = l.segment, l.wanted, l.piece, l.parted
	l.launches = append(l.launches, x)
}

// place is where a value that was computed lies.
func (l *planner) place(v ir.Value) place {
	p := l.of[l.values.Root[v]]
	return place{p.b, p.from + l.values.From[v]}
}

// put is where a node's result goes: beside others, over an input that nobody needs any more, or to a buffer of its
// own.
func (l *planner) put(n *ir.Node, over ...ir.Value) place {
	if t, ok := l.targets[n.Out]; ok {
		if l.rows[t.row] == nil {
			l.rows[t.row] = l.buffer(live.Buffer{Width: t.row.width})
		}
		l.of[n.Out] = place{l.rows[t.row], t.from}
		return l.of[n.Out]
	}
	for _, v := range over {
		if l.free(v, n) {
			l.of[n.Out] = l.of[v]
			return l.of[v]
		}
	}
	l.of[n.Out] = place{b: l.buffer(live.Buffer{Width: l.p.Widths[n.Out]})}
	return l.of[n.Out]
}

// free says whether node n may write over a value: it is the last one that reads it.
func (l *planner) free(v ir.Value, n *ir.Node) bool {
	_, beside := l.targets[v]
	if l.values.Root[v] != v || beside || slices.Contains(l.p.Segments[l.segment].Carries, v) || v == l.p.Output ||
		l.p.Widths[v] != l.p.Widths[n.Out] || l.of[v].b.Width != l.p.Widths[v] || l.of[v].b.Wanted != l.wanted {
		return false
	}
	return !slices.ContainsFunc(l.readers[v], func(r *ir.Node) bool { return r != n && !l.over(r) })
}

// over says whether a node has been computed; a norm that products compute has when they have.
func (l *planner) over(n *ir.Node) bool {
	if l.norms[n.Out] == n {
		return !slices.ContainsFunc(l.readers[n.Out], func(r *ir.Node) bool { return !l.done[r] })
	}
	return l.done[n]
}

func (l *planner) item(it *live.Item) error {
	switch it.Verb {
	case live.Prepare:
		return l.prepare(it.Input)
	case live.Compute:
		n := it.Node
		if l.within[n] || l.done[n] {
			return nil
		}
		err := l.node(n)
		l.done[n] = true
		return err
	}
	return nil
}

// capacity is the most rows of a launch.
func (m *model) capacity(wanted bool) int {
	if wanted {
		return rowClass(max(m.config.MaxWanted, 1))
	}
	return rowClass(m.config.MaxRows)
}

var errNoKernel = fmt.Errorf("no kernel: %w", errors.ErrUnsupported)
