package ir

import "fmt"

// embedOp describes Embed.
var embedOp = operation{
	name: "embed", inputs: [2]int{0, 0}, w: required, b: none, use: Table, fits: fitsEmbed,
	loop: (*Frame).embed, byRow: true,
	cases: []Case{
		{"embed", func(b *Builder, x Value, n int) Value { return b.Scale(x, 0.25) }},
		{"embed twice", func(b *Builder, x Value, n int) Value {
			return b.Add(x, b.Slice(b.Lookup("others", 3*n), n, n))
		}},
	},
}

// Embed opens the program: the residual stream begins as rows of a table of vocab × width.
func (b *Builder) Embed(name string, vocab, width int) Value {
	b.p.Vocab, b.p.Width = vocab, width
	b.p.Inputs = append(b.p.Inputs, Input{"tokens", NoValue})
	b.open(SegEmbed, -1)
	return b.lookup(name, width)
}

// Lookup reads rows of another table with a row for each token.
func (b *Builder) Lookup(name string, width int) Value {
	return b.lookup(name, width)
}

func (b *Builder) lookup(name string, width int) Value {
	w := b.weight(name+".weight", b.p.Vocab, width, Table)
	return b.adapted(w, b.add(Node{Op: Embed, W: w, B: NoRef}, width), NoValue)
}

func fitsEmbed(p *Program, n *Node) error {
	w := &p.Weights[n.W]
	if w.Cols != p.Widths[n.Out] || w.Rows != p.Vocab {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, p.Vocab, p.Widths[n.Out])
	}
	return nil
}

func (f *Frame) embed(n *Node) {
	for r, token := range f.Tokens {
		f.Weights.Decode(n.W, int(token), f.row(n.Out, r))
	}
}
