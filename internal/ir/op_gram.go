package ir

import "fmt"

// GramArgs configures Gram, whose input is as many tokens as Factors, as Token has them, the row's own first. Of each
// number of tokens from two on, in turn, Each hashes name rows of the table: hash h, of n tokens t, is
// (t₀·Factors[0] ⊕ … ⊕ tₙ₋₁·Factors[n−1]) mod Sizes[h] + Firsts[h], in 64 bits. What lies before a text, or before a
// token End in it, counts as End.
// Source: over-encoding by hashed n-grams, arXiv:2501.16975, as llama.cpp has it in qwen4exp.cpp.
type GramArgs struct {
	Factors       []uint64
	Each          int
	Sizes, Firsts []uint64
	End           int32
}

// gramOp describes Gram.
var gramOp = operation{
	name: "gram", inputs: [2]int{1, 1}, w: required, b: none, use: Table, fits: fitsGram, loop: (*Frame).gram, byRow: true,
	args: func(n *Node) string {
		a := n.Gram
		return fmt.Sprintf("factors=%d each=%d sizes=%d firsts=%d end=%d", a.Factors, a.Each, a.Sizes, a.Firsts, a.End)
	},
	cases: []Case{
		{"gram", func(b *Builder, x Value, n int) Value {
			t := b.Token()
			all := b.HeadJoin(b.HeadJoin(t, b.Scale(t, 0), 1), t, 1)
			return b.Add(x, b.Gram(all, "grams", 90, n/4, GramArgs{Factors: []uint64{3, 1<<63 + 5, 77777}, Each: 2,
				Sizes: []uint64{11, 13, 17, 19}, Firsts: []uint64{0, 11, 24, 41}, End: 7}))
		}},
	},
}

// Gram reads rows of a table of rows × width, and lays those of a row's hashes one after another.
func (b *Builder) Gram(tokens Value, name string, rows, width int, a GramArgs) Value {
	n := Node{Op: Gram, In: []Value{tokens}, W: b.weight(name+".weight", rows, width, Table), B: NoRef, Gram: &a}
	return b.add(n, len(a.Sizes)*width)
}

func fitsGram(p *Program, n *Node) error {
	a, w := n.Gram, &p.Weights[n.W]
	if len(a.Factors) < 2 || a.Each <= 0 || len(a.Sizes) != a.Each*(len(a.Factors)-1) || len(a.Firsts) != len(a.Sizes) {
		return fmt.Errorf("%d hashes of each of up to %d tokens, with %d sizes and %d firsts", a.Each, len(a.Factors),
			len(a.Sizes), len(a.Firsts))
	}
	for h, size := range a.Sizes {
		if rows := uint64(w.Rows); size < 1 || size > rows || a.Firsts[h] > rows-size {
			return fmt.Errorf("hash %d names %d rows of %s from %d on, which has %d", h, size, w.Name, a.Firsts[h], rows)
		}
	}
	if in, out := p.Widths[n.In[0]], p.Widths[n.Out]; in != len(a.Factors) || out != len(a.Sizes)*w.Cols {
		return fmt.Errorf("input of %d features, output of %d, want %d and %d", in, out, len(a.Factors), len(a.Sizes)*w.Cols)
	}
	return nil
}

// Row is the row of the table that hash h of these tokens names.
func (a *GramArgs) Row(tokens []float32, h int) int {
	hash, cut := uint64(0), false
	for i := range h/a.Each + 2 {
		t := uint64(int64(tokens[i]) - 1)
		if cut = cut || i > 0 && (tokens[i] == 0 || t == uint64(a.End)); cut {
			t = uint64(a.End)
		}
		hash ^= t * a.Factors[i]
	}
	return int(hash%a.Sizes[h] + a.Firsts[h])
}

func (f *Frame) gram(n *Node) {
	width := f.P.Weights[n.W].Cols
	for r := range f.height(n.Out) {
		for h := range n.Gram.Sizes {
			f.Weights.Decode(n.W, n.Gram.Row(f.row(n.In[0], r), h), f.row(n.Out, r)[h*width:][:width])
		}
	}
}
