package ir

import "fmt"

// headJoinOp describes HeadJoin.
var headJoinOp = operation{
	name: "head join", inputs: [2]int{2, 2}, w: none, b: none, use: 0, fits: fitsHeadJoin,
	loop: (*Frame).headJoin, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("heads=%d", n.Heads) },
	cases: []Case{
		{"head join", func(b *Builder, x Value, n int) Value {
			return b.HeadJoin(b.Slice(x, 0, n/2), b.Slice(x, n/2, n/2), 8)
		}},
		{"head join shared", func(b *Builder, x Value, n int) Value {
			return b.HeadJoinShared(b.Slice(x, 0, n/2), b.Slice(x, 3, n/8), 4)
		}},
	},
}

// HeadJoin puts the parts of y behind those of x, part by part.
func (b *Builder) HeadJoin(x, y Value, heads int) Value {
	return b.add(Node{Op: HeadJoin, In: []Value{x, y}, W: NoRef, B: NoRef, Heads: heads}, b.Width(x)+b.Width(y))
}

// HeadJoinShared puts all of y behind each part of x.
func (b *Builder) HeadJoinShared(x, y Value, heads int) Value {
	width := b.Width(x) + heads*b.Width(y)
	return b.add(Node{Op: HeadJoin, In: []Value{x, y}, W: NoRef, B: NoRef, Heads: heads}, width)
}

func fitsHeadJoin(p *Program, n *Node) error {
	x, y, out := p.Widths[n.In[0]], p.Widths[n.In[1]], p.Widths[n.Out]
	if n.Heads > 0 && x%n.Heads == 0 && x+n.Heads*y == out {
		return nil
	}
	if n.Heads <= 0 || x%n.Heads != 0 || y%n.Heads != 0 || x+y != out {
		return fmt.Errorf("%d and %d features of %d heads make %d", x, y, n.Heads, out)
	}
	return nil
}

// SharesHead says whether the parts of a HeadJoin share its second input, which is not in parts then.
func (p *Program) SharesHead(n *Node) bool {
	return p.Widths[n.In[0]]+n.Heads*p.Widths[n.In[1]] == p.Widths[n.Out]
}

func (f *Frame) headJoin(n *Node) {
	for r := range f.height(n.Out) {
		for h := range n.Heads {
			y, first := part(f.row(n.Out, r), h, n.Heads), part(f.row(n.In[0], r), h, n.Heads)
			second := f.row(n.In[1], r)
			if !f.P.SharesHead(n) {
				second = part(second, h, n.Heads)
			}
			copy(y, first)
			copy(y[len(first):], second)
		}
	}
}
