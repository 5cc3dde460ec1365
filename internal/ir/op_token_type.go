package ir

import "fmt"

// tokenTypeOp describes TokenType.
var tokenTypeOp = operation{
	name: "token type", inputs: [2]int{1, 1}, w: required, b: none, use: Vector, fits: fitsTokenType,
	loop: (*Frame).tokenType, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("sep=%d", n.Sep) },
	cases: []Case{
		{"token type", func(b *Builder, x Value, n int) Value {
			const sep = 66 // twice among the tokens that devices are tested by
			return b.TokenTypes(b.TokenTypes(x, "one", 1, sep), "many", 2, sep)
		}},
	},
}

// TokenTypes adds to each row the vector of the part of its text that it is in: a tensor of the complete name, with
// types rows. Token sep ends a part.
func (b *Builder) TokenTypes(x Value, name string, types int, sep int32) Value {
	b.p.Whole = true
	w := b.weight(name, types, b.Width(x), Vector)
	return b.add(Node{Op: TokenType, In: []Value{x}, W: w, B: NoRef, Sep: sep}, b.Width(x))
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

func (f *Frame) tokenType(n *Node) {
	width, table := f.P.Widths[n.Out], f.table(n.W)
	for _, span := range f.Spans {
		kind := 0
		for r := span.Row; r < span.Row+span.Rows; r++ {
			for j, x := range f.row(n.In[0], r) {
				f.row(n.Out, r)[j] = x + table[kind*width+j]
			}
			if f.Tokens[r] == n.Sep {
				kind = min(kind+1, len(table)/width-1)
			}
		}
	}
}
