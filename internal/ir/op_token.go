package ir

import "fmt"

// tokenOp describes Token.
var tokenOp = operation{
	name: "token", inputs: [2]int{0, 0}, w: none, b: none, use: 0, fits: fitsToken, loop: (*Frame).token, byRow: true,
	cases: []Case{
		{"token", func(b *Builder, x Value, n int) Value {
			return b.Add(x, b.Mul(x, b.Scale(b.Token(), 0.01)))
		}},
	},
}

// Token is the number of each row's token, plus 1, as a feature: what comes before a text has 0 there.
func (b *Builder) Token() Value { return b.add(Node{Op: Token, W: NoRef, B: NoRef}, 1) }

func fitsToken(p *Program, n *Node) error {
	if p.Widths[n.Out] != 1 || p.Vocab >= 1<<24 {
		return fmt.Errorf("%d features of %d tokens, want one, of fewer than 2²⁴", p.Widths[n.Out], p.Vocab)
	}
	return nil
}

func (f *Frame) token(n *Node) {
	for r, token := range f.Tokens {
		f.row(n.Out, r)[0] = float32(token + 1)
	}
}
