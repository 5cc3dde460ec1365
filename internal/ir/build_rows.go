package ir

import "fmt"

// Affine is W·x + B. Each name is complete, or empty for none. w has width values, or one for all features; b has the
// width of x, in the first of so many rows.
func (b *Builder) Affine(x Value, w string, width int, bias string, rows int) Value {
	n := Node{Op: Affine, In: []Value{x}, W: NoRef, B: NoRef}
	if w != "" {
		n.W = b.vector(w, width)
	}
	if bias != "" {
		n.B = b.weight(bias, rows, b.Width(x), Vector)
	}
	return b.add(n, b.Width(x))
}

// Position adds the vectors of learned positions, of which there are so many.
func (b *Builder) Position(x Value, name string, positions int) Value {
	b.p.Positions = positions
	w := b.weight(name+".weight", positions, b.Width(x), Vector)
	return b.add(Node{Op: Position, In: []Value{x}, W: w, B: NoRef}, b.Width(x))
}

// TokenTypes adds the vector of each row's part of its text: so many rows of the complete name.
func (b *Builder) TokenTypes(x Value, name string, types int, sep int32) Value {
	b.p.Whole = true
	w := b.weight(name, types, b.Width(x), Vector)
	return b.add(Node{Op: TokenType, In: []Value{x}, W: w, B: NoRef, Sep: sep}, b.Width(x))
}

// EachHeadLayerNorm is LayerNorm of each head of head features, each with weights of its own, and no bias.
func (b *Builder) EachHeadLayerNorm(x Value, name string, head int, eps float32) Value {
	w := b.weight(name+".weight", b.Width(x)/head, head, Vector)
	a := NormArgs{Layer: true, Eps: eps, Group: head}
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: w, B: NoRef, Norm: a})
}

// Pooling says what becomes of the vectors.
func (b *Builder) Pooling(kind Pooling) { b.p.Pooling = kind }

func fitsAffine(p *Program, n *Node) error {
	width := p.Widths[n.Out]
	if n.W == NoRef && n.B == NoRef {
		return fmt.Errorf("neither factors nor a bias")
	}
	if n.W != NoRef && p.Weights[n.W].Rows*p.Weights[n.W].Cols != 1 {
		if err := vector(p, n.W, width); err != nil {
			return err
		}
	}
	if n.B != NoRef && p.Weights[n.B].Cols != width {
		return fmt.Errorf("%s has %d columns, want %d", p.Weights[n.B].Name, p.Weights[n.B].Cols, width)
	}
	return sameWidths(p, n)
}

func fitsTokenType(p *Program, n *Node) error {
	if w := &p.Weights[n.W]; w.Cols != p.Widths[n.Out] || !p.Whole {
		return fmt.Errorf("%s has %d columns, want %d; whole texts %t, want them", w.Name, w.Cols, p.Widths[n.Out], p.Whole)
	}
	if n.Sep < 0 || int(n.Sep) >= p.Vocab {
		return fmt.Errorf("token %d of %d", n.Sep, p.Vocab)
	}
	return sameWidths(p, n)
}

func fitsPosition(p *Program, n *Node) error {
	w := &p.Weights[n.W]
	if w.Cols != p.Widths[n.Out] || w.Rows != p.Positions {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, p.Positions, p.Widths[n.Out])
	}
	return sameWidths(p, n)
}
