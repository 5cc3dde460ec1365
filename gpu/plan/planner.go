package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// ErrNoKernel is wrapped by the error of an op or a shape that no kernel computes.
var ErrNoKernel = fmt.Errorf("no kernel: %w", errors.ErrUnsupported)

// Weights says where the weights of a program lie.
type Weights interface {
	// Matrix is the matrix that a weight is part of; nil for vectors.
	Matrix(r ir.Ref) *kernel.Matrix
	// Pieces lists the pieces of a matrix that moves in pieces, each a matrix, and the group of the first; nil: the
	// matrix is one piece.
	Pieces(r ir.Ref) (pieces []*kernel.Matrix, group int)
	// Lookup is the matrix that rows are looked up in.
	Lookup(r ir.Ref) *kernel.Matrix
	// Experts describes the matrix of each expert: they are alike, and its Address is a table of theirs. It is nil for
	// a weight that is part of another's pair.
	Experts(r ir.Ref) *kernel.Matrix
	// Vector is the address of a weight's float32 values; 0 for ir.NoRef.
	Vector(r ir.Ref) uint64
	// Moves says whether the groups of a weight move: they share slots with others.
	Moves(r ir.Ref) bool
}

// Cache is where a layer's keys and values lie, and where those of blocks that are not sealed yet do, if that is
// elsewhere.
type Cache struct{ Keys, Values, OpenKeys, OpenValues uint64 }

// Target is the device that a program is planned for.
type Target struct {
	Kernels  kernel.Table
	Weights  Weights
	KV       backend.KV
	Caches   []Cache  // by ir.Program.KV
	States   []uint64 // by ir.Program.States: where its blocks begin
	Rows     int      // most rows of a step
	Wanted   int      // most rows whose outputs are wanted
	Apart    bool     // prompts are multiplied in half precision
	Segments []int    // that are computed on the device, ascending; nil: all
	Team     *Team    // the device's place among several that share each segment; nil: it is alone
}

func (t *Target) computes(segment int) bool {
	return t.Segments == nil || slices.Contains(t.Segments, segment)
}

// Plan is the launches of a program's segments. It does not change.
type Plan struct {
	Scratch int   // bytes of the memory of values
	Room    int   // bytes of a part of a value that is exchanged, at most
	Entry   Entry // layout of what the host writes about a step
	// Routes are, by segment, the choices that decide which experts are needed, where experts move. RouteOf is, for a
	// segment of such experts, the segment of its route; Absent for other segments.
	Routes  []*Choice
	RouteOf []int

	program  *ir.Bound
	target   Target
	values   *live.Values
	launches []launch
	cuts     []cut
	borders  map[ir.Value]place
}

// Absent stands for no segment, and for no group.
const Absent = -1

// Forms of buffers that products take. A blob has no rows: it is Width bytes that a kernel leaves for another one.
const (
	inFloats live.Form = iota + 1 // rows of float32, zero from their width to the next multiple of 256
	inBytes
	asBlob
)

// place is where a value lies in each row of a buffer: from is the number of its first float32.
type place struct {
	b    *live.Buffer
	from int
}

// stride of a buffer's rows, in float32.
func stride(b *live.Buffer) int { return kernel.PaddedWidth(b.Width) }

// bytesOf is the size of a buffer for a number of rows.
func bytesOf(b *live.Buffer, rows int) int {
	switch b.Form {
	case asBlob:
		return b.Width
	case inBytes:
		return rows * kernel.QuantisedBytes(b.Width)
	}
	return rows * 4 * stride(b)
}

// launch is a few kernels that follow one another in every stream.
type launch struct {
	segment       int
	wanted        bool           // rows are the wanted ones
	reads, writes []*live.Buffer // buffers whose contents the launch needs, and those that it makes
	kernels       emitter

	piece  int  // 0, or, of a product with a piece of a matrix: 1 + the piece's group
	parted bool // it runs for each part of a segment of experts that move
}

// emitter adds the kernels of a launch to a stream.
type emitter interface{ emit(x *stream) }

// input is the rows that products take: prepared by a launch of its own, or normalised by the products themselves.
type input struct {
	b        *live.Buffer
	norm     *ir.Node // nil: none
	x        place    // the value that is normalised, or converted
	products []taker
}

// taker is a matrix that multiplies an input. A row takes it once, or, of experts' matrices of one shape, several
// times.
type taker struct {
	w     *kernel.Matrix
	times int
}

// planner turns nodes into launches.
type planner struct {
	*Fusion
	*Plan
	of      map[ir.Value]place // by root
	rows    map[*row]*live.Buffer
	inputs  map[live.Prepared]*input
	done    map[*ir.Node]bool
	buffers []*live.Buffer
	choices map[ir.Value]*Choice // by route
	entry   entryOf

	segment int
	wanted  bool
	piece   int // see launch; so is parted
	parted  bool
}

// New plans the launches of all segments, and the memory of the values between them.
func New(p *ir.Bound, f *Fusion, t Target) (*Plan, error) {
	l := &planner{Fusion: f, Plan: &Plan{program: p, target: t, values: live.ValuesOf(p.Program),
		Routes: make([]*Choice, len(p.Segments)), RouteOf: slices.Repeat([]int{Absent}, len(p.Segments))},
		of: map[ir.Value]place{}, rows: map[*row]*live.Buffer{}, inputs: map[live.Prepared]*input{},
		choices: map[ir.Value]*Choice{}, done: map[*ir.Node]bool{}}
	for s, phases := range live.Order(p.Program, l.rules()) {
		l.segment = s
		l.takeIn(s)
		first := len(l.launches)
		for i := range phases {
			l.wanted = phases[i].Wanted
			for j := range phases[i].Items {
				if err := l.item(&phases[i].Items[j]); err != nil {
					return nil, fmt.Errorf("%s: %w", &p.Segments[s], err)
				}
			}
		}
		l.handOn(s, first)
	}
	l.placeBuffers()
	l.borders = l.of
	l.Entry = l.entry.lay(p.Program, l.Plan)
	return l.Plan, nil
}

// rules are a GPU's: all but attention is computed row by row, and products take their own forms.
func (l *planner) rules() live.Rules {
	return live.Rules{
		ByRow:   func(op ir.Op) bool { return op != ir.Attend },
		InPlace: func(ir.Op) bool { return false }, // put decides
		Form:    l.form,
		Passes: func(n *ir.Node) []live.Pass { // all of it is planned at the end: they only say what it takes
			if n.Experts.Before {
				return nil // each expert takes rows of its own
			}
			return []live.Pass{{Matrices: n.Experts.Takes()}}
		},
	}
}

// form is the form of rows that a weight is multiplied by.
func (l *planner) form(w ir.Ref) live.Form {
	if l.target.Kernels.Integers(l.program.Types[w]) {
		return inBytes
	}
	return inFloats
}

// formOf is the form of rows that a matrix multiplies.
func formOf(w *kernel.Matrix) live.Form {
	if w.Float {
		return inFloats
	}
	return inBytes
}

// placeBuffers finds how long each buffer is needed, and where in one memory it lies.
func (l *planner) placeBuffers() {
	for i := range l.launches {
		for _, b := range slices.Concat(l.launches[i].reads, l.launches[i].writes) {
			b.First, b.Last = min(b.First, i), max(b.Last, i)
		}
	}
	l.cut()
	l.Scratch = live.Place(l.buffers, func(b *live.Buffer) int {
		return (bytesOf(b, l.Capacity(b.Wanted)) + 255) &^ 255
	})
}

// takeIn gives a place to values that a segment reads and that no segment before it computed: another device may hand
// them in. They lie there from the segment's first launch on.
func (l *planner) takeIn(s int) {
	for _, v := range l.program.Only([]int{s}).Taken() {
		if _, ok := l.of[v]; !ok {
			b := l.buffer(live.Buffer{Width: l.program.Widths[v]})
			b.First = len(l.launches)
			l.of[v] = place{b: b}
		}
	}
}

// handOn keeps the values that a segment hands on in their places until its last launch.
func (l *planner) handOn(s, first int) {
	last := len(l.launches) - 1
	for _, v := range l.program.Handed(s) {
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

func (l *planner) blob(bytes int) *live.Buffer {
	return l.buffer(live.Buffer{Form: asBlob, Width: bytes})
}

// launch adds a launch.
func (l *planner) launch(kernels emitter, reads, writes []*live.Buffer) {
	l.launches = append(l.launches, launch{segment: l.segment, wanted: l.wanted, piece: l.piece, parted: l.parted,
		reads: reads, writes: writes, kernels: kernels})
}

// place is where a value that was computed lies.
func (l *planner) place(v ir.Value) place {
	p := l.of[l.values.Root[v]]
	return place{p.b, p.from + l.values.From[v]}
}

// put is where a node's result goes: beside others, over an input that no later node needs, or to a buffer of its own.
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
	l.of[n.Out] = place{b: l.buffer(live.Buffer{Width: l.program.Widths[n.Out]})}
	return l.of[n.Out]
}

// free says whether node n may write over a value: it is the last one that reads it.
func (l *planner) free(v ir.Value, n *ir.Node) bool {
	p := l.program
	_, beside := l.targets[v]
	if l.values.Root[v] != v || beside || slices.Contains(p.Segments[l.segment].Carries, v) || v == p.End() ||
		p.Widths[v] != p.Widths[n.Out] || l.of[v].b.Width != p.Widths[v] || l.of[v].b.Wanted != l.wanted {
		return false
	}
	return !slices.ContainsFunc(l.readers[v], func(r *ir.Node) bool { return r != n && !l.over(r) })
}

// over says whether a node has been computed. A norm that products compute is over when all of these are.
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

// Capacity is the most rows of a launch.
func (p *Plan) Capacity(wanted bool) int {
	if wanted {
		return RowClass(max(p.target.Wanted, 1))
	}
	return RowClass(p.target.Rows)
}
