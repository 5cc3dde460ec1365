package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// ErrWhole is wrapped by the error of a program that cannot be divided among the cards of a team.
var ErrWhole = fmt.Errorf("its matrices cannot be divided among cards: %w", errors.ErrUnsupported)

// Team is a card's place among those that compute a program together, each with a part of its matrices.
type Team struct {
	Member, Members int
	// Sums are results of products with some columns of a matrix: cards add theirs, in the order of their numbers.
	Sums map[ir.Value]bool
	// Joins are results of products with some rows of a matrix, which are whole for what follows: the first feature of
	// the card's own.
	Joins map[ir.Value]int
}

// divides says whether other cards have parts of a product's result, too.
func (t *Team) divides(v ir.Value) bool {
	if t == nil {
		return false
	}
	_, joins := t.Joins[v]
	return joins || t.Sums[v]
}

// Part is what one card of a team computes of a program: the same segments with the same values, of which some are
// narrower. Its program has no exchange in it, so that package ir would not take it for a whole one.
type Part struct {
	*ir.Bound
	Team   Team
	Pieces [][]Piece // by Ref of the whole program
}

// Piece is what a part has of a weight of the whole program, as a weight of its own: some rows, or some columns of all.
type Piece struct {
	To        ir.Ref
	Row, Rows int
	Col, Cols int
}

// Divide makes the parts of a program for a team's cards. Each has some heads of attention, with their caches, and some
// features of the feed-forward parts: rows of the matrices that make these, and columns of those that take them. The
// head's rows are divided, too. All else is computed by each card. So a layer has two values that cards exchange. The
// error names what cannot be divided.
func Divide(p *ir.Bound, members int) ([]*Part, error) {
	d := &divider{p: p, members: members, writer: map[ir.Value]*ir.Node{}, readers: map[ir.Value][]*ir.Node{},
		uses: make([]int, len(p.Weights)), borders: map[ir.Value][]int{}, joined: map[*ir.Node]bool{}}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			d.note(&p.Segments[s].Nodes[i])
		}
	}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if err := d.mark(p.Segments[s].Kind, &p.Segments[s].Nodes[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", &p.Segments[s], err)
			}
		}
	}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if err := d.check(&p.Segments[s].Nodes[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", &p.Segments[s], err)
			}
		}
	}
	parts := make([]*Part, members)
	for m := range parts {
		parts[m] = d.part(m)
	}
	return parts, nil
}

// divider finds which values are divided, and where.
type divider struct {
	p       *ir.Bound
	members int
	writer  map[ir.Value]*ir.Node
	readers map[ir.Value][]*ir.Node
	uses    []int              // by Ref: nodes that name it
	borders map[ir.Value][]int // of values of which each card has some features: where each card's begin, and the width
	joined  map[*ir.Node]bool  // products whose rows are divided and whose results are joined
}

func (d *divider) note(n *ir.Node) {
	d.writer[n.Out] = n
	for _, v := range n.In {
		d.readers[v] = append(d.readers[v], n)
	}
	for _, r := range n.Weights() {
		d.uses[r]++
	}
}

// wholeOp is a refusal of a node.
func wholeOp(n *ir.Node, why string) error { return fmt.Errorf("%s%s: %w", n.Op, why, ErrWhole) }

// mark divides what a node takes and makes, if it is one at which a division begins.
func (d *divider) mark(kind ir.SegmentKind, n *ir.Node) error {
	switch n.Op {
	case ir.Attend:
		return d.markHeads(n)
	case ir.GLU:
		d.markFeatures(n)
	case ir.Linear:
		w := &d.p.Weights[n.W]
		d.joined[n] = kind == ir.SegHead && w.Rows%(d.members*kernel.TileRows) == 0 &&
			(d.uses[n.W] == 1 || d.uses[n.W] == 2 && w.Use&ir.Table != 0)
	case ir.Embed, ir.Norm, ir.RoPE, ir.Add, ir.Mul, ir.Scale, ir.SoftCap, ir.Temper, ir.Affine, ir.Position,
		ir.TokenType, ir.Rows:
	default:
		return wholeOp(n, "")
	}
	return nil
}

// markHeads divides the heads of an attention: keys and values with the queries that read them.
func (d *divider) markHeads(n *ir.Node) error {
	a := n.Attend
	if len(n.In) != 3 || n.W != ir.NoRef || n.B != ir.NoRef || a.Heads%a.KVHeads != 0 {
		return wholeOp(n, " that shares a cache, has sinks or an odd number of heads")
	}
	each, block := a.Heads/a.KVHeads, 1
	for _, r := range d.readers[n.Out] {
		if r.Op == ir.Linear {
			block = max(block, d.p.Types[r.W].Block())
		}
	}
	unit := 1
	for ; unit <= a.KVHeads; unit++ {
		if a.KVHeads%unit == 0 && unit*a.KDim%kernel.TileRows == 0 && unit*a.VDim%kernel.TileRows == 0 &&
			unit*each*a.VDim%block == 0 {
			break
		}
	}
	heads := spread(a.KVHeads, unit, d.members)
	if heads == nil {
		return wholeOp(n, fmt.Sprintf(" with %d heads of keys, which %d cards cannot share", a.KVHeads, d.members))
	}
	for i, width := range []int{each * a.KDim, a.KDim, a.VDim} {
		if err := d.source(n.In[i], times(heads, width), a); err != nil {
			return err
		}
	}
	d.borders[n.Out] = times(heads, each*a.VDim)
	return nil
}

// source divides a value and all that leads to it, up to the product that it comes from.
func (d *divider) source(v ir.Value, borders []int, a *ir.AttendArgs) error {
	for {
		n := d.writer[v]
		d.borders[v] = borders
		switch {
		case n == nil:
			return fmt.Errorf("an input that is attended to: %w", ErrWhole)
		case n.Op == ir.Linear && d.uses[n.W] == 1:
			return nil
		case n.Op == ir.RoPE && n.RoPE.HeadDim == a.KDim, n.Op == ir.Scale, n.Op == ir.Temper:
		case n.Op == ir.Norm && (n.Norm.Group == a.KDim || n.Norm.Group == a.VDim) && d.ofGroup(n, n.W) && d.ofGroup(n, n.B):
		default:
			return wholeOp(n, " between a product and attention")
		}
		v = n.In[0]
	}
}

// ofGroup says whether a norm's weight is the same for each head.
func (d *divider) ofGroup(n *ir.Node, r ir.Ref) bool {
	return r == ir.NoRef || d.p.Weights[r].Rows*d.p.Weights[r].Cols == n.Norm.Group
}

// markFeatures divides what an activation takes from products and makes for others. Another one is computed by each
// card.
func (d *divider) markFeatures(n *ir.Node) {
	block := 1
	for _, v := range n.In {
		w, other := d.writer[v], func(r *ir.Node) bool { return r != n }
		if w == nil || w.Op != ir.Linear || d.uses[w.W] != 1 || slices.ContainsFunc(d.readers[v], other) {
			return
		}
	}
	for _, r := range d.readers[n.Out] {
		if r.Op != ir.Linear || d.uses[r.W] != 1 {
			return
		}
		block = max(block, d.p.Types[r.W].Block())
	}
	width, unit := d.p.Widths[n.Out], max(block, kernel.TileRows)
	if width >= d.members*kernel.TileCols {
		unit = max(unit, kernel.TileCols)
	}
	borders := spread(width, unit, d.members)
	if borders == nil || len(d.readers[n.Out]) == 0 {
		return
	}
	for _, v := range append(n.In[:len(n.In):len(n.In)], n.Out) {
		d.borders[v] = borders
	}
}

// spread divides n among cards, by multiples of a unit but for the last one's end; nil: some card would have nothing.
func spread(n, unit, members int) []int {
	units := (n + unit - 1) / unit
	if units < members {
		return nil
	}
	borders := make([]int, members+1)
	for m := range members {
		borders[m] = units * m / members * unit
	}
	borders[members] = n
	return borders
}

func times(borders []int, n int) []int {
	all := slices.Clone(borders)
	for i := range all {
		all[i] *= n
	}
	return all
}

// check returns an error for a node that takes a divided value in another way than part by part.
func (d *divider) check(n *ir.Node) error {
	divided := 0
	for _, v := range n.In {
		if d.borders[v] != nil {
			divided++
		}
	}
	of := d.borders[n.Out]
	other := func(v ir.Value) bool { return !slices.Equal(d.borders[v], of) }
	switch {
	case n.Op == ir.Linear:
		if divided > 0 && (of != nil || d.uses[n.W] != 1 || d.joined[n] || d.p.Widths[n.Out]%4 != 0) {
			return wholeOp(n, " of divided rows")
		}
	case n.Op == ir.Attend || divided == 0 && of == nil:
	case divided != len(n.In) || slices.ContainsFunc(n.In, other):
		return wholeOp(n, " of divided rows")
	}
	return nil
}
