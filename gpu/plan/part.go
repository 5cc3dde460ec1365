package plan

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// part makes one card's part.
func (d *divider) part(member int) *Part {
	p := *d.p.Program
	p.Segments, p.Widths, p.Weights, p.KV = slices.Clone(p.Segments), slices.Clone(p.Widths), slices.Clone(p.Weights),
		slices.Clone(p.KV)
	b := *d.p
	b.Program, b.Types, b.Tensors = &p, slices.Clone(b.Types), slices.Clone(b.Tensors)
	x := &Part{Bound: &b, Team: Team{Member: member, Members: d.members, Sums: map[ir.Value]bool{},
		Joins: map[ir.Value]int{}}, Pieces: make([][]Piece, len(p.Weights))}
	for r := range p.Weights {
		w := &p.Weights[r]
		x.Pieces[r] = []Piece{{To: ir.Ref(r), Rows: w.Rows, Cols: w.Cols}}
	}
	for v, borders := range d.borders {
		p.Widths[v] = borders[member+1] - borders[member]
	}
	for s := range p.Segments {
		nodes := slices.Clone(p.Segments[s].Nodes)
		for i := range nodes {
			d.narrow(x, &nodes[i], d.writer[nodes[i].Out])
		}
		p.Segments[s].Nodes = nodes
	}
	return x
}

// narrow gives a node of a part its share of what the whole program's node computes.
func (d *divider) narrow(x *Part, n, whole *ir.Node) {
	of, member := d.borders[n.Out], x.Team.Member
	switch {
	case n.Op == ir.Linear && d.joined[whole]:
		rows := x.Weights[n.W].Rows / d.members
		x.Team.Joins[n.Out] = member * rows
		d.narrowRows(x, n, member*rows, rows)
	case n.Op == ir.Linear && of != nil:
		d.narrowRows(x, n, of[member], of[member+1]-of[member])
	case n.Op == ir.Linear && d.borders[n.In[0]] != nil:
		from := d.borders[n.In[0]]
		x.Team.Sums[n.Out] = true
		x.cut(n.W, Piece{Rows: x.Weights[n.W].Rows, Col: from[member], Cols: from[member+1] - from[member]})
		if n.B != ir.NoRef && member > 0 { // it is added once
			x.Pieces[n.B], n.B = nil, ir.NoRef
		}
	case n.Op == ir.RoPE && of != nil:
		a := *n.RoPE
		a.Heads = x.Widths[n.Out] / a.HeadDim
		n.RoPE = &a
	case n.Op == ir.Attend:
		a := *n.Attend
		a.KVHeads, a.Heads = x.Widths[n.In[1]]/a.KDim, x.Widths[n.In[0]]/a.KDim
		n.Attend, x.KV[a.KV].KVHeads = &a, a.KVHeads
	}
}

// narrowRows gives a product some rows of its matrix. Of a matrix in which rows are looked up, too, they are a weight
// of their own.
func (d *divider) narrowRows(x *Part, n *ir.Node, row, rows int) {
	w := x.Weights[n.W]
	piece := Piece{Row: row, Rows: rows, Cols: w.Cols}
	if d.uses[n.W] == 1 {
		x.cut(n.W, piece)
	} else {
		of := n.W
		x.Weights[of].Use &^= ir.Matrix
		w.Rows, w.Use = rows, ir.Matrix
		x.Weights, x.Types, x.Tensors = append(x.Weights, w), append(x.Types, x.Types[of]), append(x.Tensors, x.Tensors[of])
		n.W = ir.Ref(len(x.Weights) - 1)
		piece.To = n.W
		x.Pieces[of] = append(x.Pieces[of], piece)
	}
	if n.B != ir.NoRef {
		x.cut(n.B, Piece{Rows: 1, Col: row, Cols: rows})
	}
}

// cut leaves a piece of a weight.
func (x *Part) cut(r ir.Ref, piece Piece) {
	piece.To = r
	x.Pieces[r] = []Piece{piece}
	x.Weights[r].Rows, x.Weights[r].Cols = piece.Rows, piece.Cols
}
