package ir

// Group is bytes that move together: a segment's weights of one use, one expert of it, or some rows of a large matrix.
// Segment, Use, Expert and Piece identify a group everywhere.
type Group struct {
	Segment int
	// Use is how the segments that are computed read all of its weights. Groups of a Matrix are what a step streams.
	// The rows of a Table can be read from the mapped file. A Vector is small: it is uploaded once, and stays.
	Use     Use
	Expert  int // Dense, or the expert whose rows of Weights these are
	Piece   int // number of a piece of the only weight: its rows from Piece·Each on
	Each    int // rows of a piece, at most; 0: the group has all rows
	Weights []Ref
	Bytes   int64
}

// Dense marks a group that belongs to no single expert; the small biases of all experts are in one, too.
const Dense = -1

// PieceBytes is the size up to which a matrix moves whole; larger ones move in pieces of rows.
const PieceBytes = 64 << 20

// pieceRows divides the number of rows of a piece. It is larger than every device's row grain.
const pieceRows = 64

// Rows are the rows [from, to) of a weight that the group holds.
func (g *Group) Rows(w *Weight) (from, to int) {
	switch {
	case g.Expert != Dense:
		n := w.Rows / w.Experts
		return g.Expert * n, (g.Expert + 1) * n
	case g.Each > 0:
		return g.Piece * g.Each, min((g.Piece+1)*g.Each, w.Rows)
	}
	return 0, w.Rows
}

// On lists the groups of a device that runs the given segments: first the vectors of all segments, then, in program
// order, tables and matrices. A weight that several segments use belongs to one of them: the first, except that an
// embedding that is also multiplied belongs to the segment that multiplies.
//
// The matrix of an end moves in pieces of rows if it is large and the only one there: each piece gives some of the
// outputs.
func (b *Bound) On(segments []int) []Group {
	multiplied := make([]bool, len(b.Weights))
	for _, s := range segments {
		for i := range b.Segments[s].Nodes {
			for _, r := range b.Segments[s].Nodes[i].Matrices() {
				multiplied[r] = true
			}
		}
	}
	l := lister{b: b, multiplied: multiplied, held: make([]bool, len(b.Weights))}
	for _, s := range segments {
		l.segment(s)
	}
	return append(l.vectors, l.others...)
}

// Returned says of each weight whether segments after the one that its group belongs to multiply by it, too, such as
// layers that rows pass through again. Its group cannot make room for others in between.
func (b *Bound) Returned() []bool {
	returned, first := make([]bool, len(b.Weights)), make([]int, len(b.Weights))
	for s := range b.Segments {
		for i := range b.Segments[s].Nodes {
			for _, r := range b.Segments[s].Nodes[i].Matrices() {
				if first[r] == 0 {
					first[r] = s + 1
				}
				returned[r] = returned[r] || first[r] != s+1
			}
		}
	}
	return returned
}

// lister makes groups of weights that are in none yet.
type lister struct {
	b               *Bound
	multiplied      []bool // by Ref: by a node of the segments
	held            []bool // by Ref
	vectors, others []Group
}

// segment lists the groups of a segment: vectors, tables and matrices, then expert by expert.
func (l *lister) segment(s int) {
	var vectors, tables, matrices, experts []Ref
	for i := range l.b.Segments[s].Nodes {
		n := &l.b.Segments[s].Nodes[i]
		for _, r := range n.Weights() {
			switch {
			case l.held[r] || n.Op.LooksUp() && l.multiplied[r]:
				continue
			case n.Op.LooksUp():
				tables = append(tables, r)
			case !l.multiplied[r]:
				vectors = append(vectors, r)
			case l.b.Weights[r].Experts > 0:
				experts = append(experts, r)
			default:
				matrices = append(matrices, r)
			}
			l.held[r] = true
		}
	}
	l.vectors = l.b.dense(l.vectors, s, Vector, vectors)
	l.others = l.b.dense(l.others, s, Table, tables)
	if each := l.b.each(s, matrices); each > 0 {
		l.others = l.b.pieces(l.others, s, matrices[0], each)
	} else {
		l.others = l.b.dense(l.others, s, Matrix, matrices)
	}
	dense := len(l.others)
	for _, r := range experts {
		n := l.b.Weights[r].Experts
		for e := range n {
			if len(l.others) == dense+e {
				l.others = append(l.others, Group{Segment: s, Use: Matrix, Expert: e})
			}
			g := &l.others[dense+e]
			g.Weights = append(g.Weights, r)
			g.Bytes += l.b.Size(r) / int64(n)
		}
	}
}

// dense adds a group of weights, if there are any.
func (b *Bound) dense(groups []Group, s int, use Use, weights []Ref) []Group {
	if len(weights) == 0 {
		return groups
	}
	g := Group{Segment: s, Use: use, Expert: Dense, Weights: weights}
	for _, r := range weights {
		g.Bytes += b.Size(r)
	}
	return append(groups, g)
}

// each is how many rows a piece of a segment's matrix has; 0: the segment's matrices move whole.
func (b *Bound) each(s int, matrices []Ref) int {
	if len(matrices) != 1 || !b.Segments[s].Kind.Ends() {
		return 0
	}
	rows, size, piece := b.Weights[matrices[0]].Rows, b.Size(matrices[0]), b.Piece
	if piece == 0 {
		piece = PieceBytes
	}
	pieces := int((size + piece - 1) / piece)
	if each := ((rows+pieces-1)/pieces + pieceRows - 1) / pieceRows * pieceRows; each < rows {
		return each
	}
	return 0
}

func (b *Bound) pieces(groups []Group, s int, r Ref, each int) []Group {
	w := &b.Weights[r]
	row := b.Size(r) / int64(w.Rows)
	for i := 0; i*each < w.Rows; i++ {
		g := Group{Segment: s, Use: Matrix, Expert: Dense, Piece: i, Each: each, Weights: []Ref{r}}
		from, to := g.Rows(w)
		g.Bytes = row * int64(to-from)
		groups = append(groups, g)
	}
	return groups
}
