package ir

// Frame is a step as the loops of ops see it. The loops are plain and written to be read: they say what an op means.
// Sums run in float64, in order, and are rounded once. A device that has no kernel for an op may run its loop instead.
type Frame struct {
	P       *Program
	Values  [][]float32 // by Value, row after row; of those that are computed so far
	Tokens  []int32     // by row, if they are an input
	Spans   []Span      // which tile the rows in order
	Wanted  []int32     // rows whose results are wanted, ascending
	Weights Weights
	Caches  []Cache                              // by Program.KV
	States  []State                              // by Program.States
	Observe func(w Ref, expert int, x []float32) // what a matrix multiplies; nil: nobody asks
}

// Span is the rows of one sequence in a step: so many from row Row on, at positions from Pos on in its caches.
type Span struct {
	Row, Rows, Pos int
	Grid           Grid
	Places         []Place   // by row; nil: each row's position, on every axis
	Sees           []int32   // by row, the last position that it sees; nil: its own
	Heard          int       // so many positions of the text an encoder read: see Side
	Adapters       []Applied // of the sequence
}

// LastOf is the last position that row i of a span sees, which begins at a position.
func LastOf(sees []int32, pos, i int) int {
	if sees != nil {
		return int(sees[i])
	}
	return pos + i
}

// Grid is the size of a picture whose rows lie line by line; zero: the rows are one line.
type Grid struct{ Height, Width int }

// OrLine is the grid, or one line if the rows of a span, so many, have none.
func (g Grid) OrLine(rows int) Grid {
	if g == (Grid{}) {
		return Grid{1, rows}
	}
	return g
}

// Place is a row's position on several axes, such as time, down and across. RoPE by sections reads it: see
// RoPEArgs.Axes.
type Place [3]int32

// Place is the place of the span's row i.
func (s *Span) Place(i int) Place { return PlaceOf(s.Places, s.Pos, i) }

// PlaceOf is the place of row i of a span that begins at a position.
func PlaceOf(places []Place, pos, i int) Place {
	if places != nil {
		return places[i]
	}
	p := int32(pos + i)
	return Place{p, p, p}
}

// Weights decodes weights.
type Weights interface {
	// Decode writes row i of a weight to the memory of its columns.
	Decode(r Ref, i int, to []float32)
}

// Cache keeps keys and values of one layer, rounded to its format. span is an index into Frame.Spans.
type Cache interface {
	Put(span, pos int, k, v []float32)      // of all heads
	Key(span, row, pos, head int) []float32 // what is kept at pos, as the row at position row sees it
	Value(span, row, pos, head int) []float32
}

// State keeps the state that one node leaves of each sequence: see StateLayer.
type State interface {
	Before(span, pos int) []float32 // the state that the row at pos goes on from; zeros at the beginning
	After(span, pos int) []float32  // memory for the state after the row at pos
}

// Run computes a node. Values[n.Out] has its size, see Height, and is zero.
func (f *Frame) Run(n *Node) { operations[n.Op].loop(f, n) }

// Height is the number of rows of a node's result.
func (f *Frame) Height(n *Node) int {
	switch {
	case n.Op == Rows:
		return len(f.Wanted)
	case len(n.In) > 0:
		return f.height(n.In[0])
	}
	return f.all()
}

// all is the number of rows of the step.
func (f *Frame) all() int {
	if len(f.Spans) == 0 {
		return 0
	}
	last := &f.Spans[len(f.Spans)-1]
	return last.Row + last.Rows
}

// row is row i of a value.
func (f *Frame) row(v Value, i int) []float32 {
	w := f.P.Widths[v]
	return f.Values[v][i*w : (i+1)*w]
}

// height is the number of rows of a value.
func (f *Frame) height(v Value) int { return len(f.Values[v]) / f.P.Widths[v] }

// each computes every element of the output from the same elements of the inputs.
func (f *Frame) each(n *Node, formula func(x []float32) float32) {
	x := make([]float32, len(n.In))
	y := f.Values[n.Out]
	for i := range y {
		for j, v := range n.In {
			x[j] = f.Values[v][i]
		}
		y[i] = formula(x)
	}
}

// observe reports a row that a matrix is multiplied by, if somebody observes.
func (f *Frame) observe(w Ref, expert int, x []float32) {
	if f.Observe != nil {
		f.Observe(w, expert, x)
	}
}

// vector decodes a weight of one row, or n ones (or zeros) where there is none.
func (f *Frame) vector(r Ref, n int, otherwise float32) []float32 {
	v := make([]float32, n)
	if r != NoRef {
		f.Weights.Decode(r, 0, v)
		return v
	}
	for i := range v {
		v[i] = otherwise
	}
	return v
}

// table decodes a small weight, row after row.
func (f *Frame) table(r Ref) []float32 {
	w := &f.P.Weights[r]
	v := make([]float32, w.Rows*w.Cols)
	for i := range w.Rows {
		f.Weights.Decode(r, i, v[i*w.Cols:(i+1)*w.Cols])
	}
	return v
}

// part is head h of so many in a row.
func part(row []float32, h, heads int) []float32 {
	n := len(row) / heads
	return row[h*n : (h+1)*n]
}
