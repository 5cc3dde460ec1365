package ir

import "fmt"

// linearOp describes Linear.
var linearOp = operation{
	name: "linear", inputs: [2]int{1, 1}, w: required, b: optional, use: Matrix, fits: fitsLinear,
	loop: (*Frame).linear, cost: costOfMatrix, byRow: true,
	cases: []Case{
		{"linear", func(b *Builder, x Value, n int) Value { return b.Linear(x, "w", n) }},
	},
}

// Linear multiplies x by the weight matrix called name, which has out rows, and adds its bias if the file has one.
func (b *Builder) Linear(x Value, name string, out int) Value {
	bias := NoRef
	if b.Has(name + ".bias") {
		bias = b.vector(name+".bias", out)
	}
	return b.linear(x, name, out, bias)
}

// LinearBias is Linear with a bias that must be there.
func (b *Builder) LinearBias(x Value, name string, out int) Value {
	return b.linear(x, name, out, b.vector(name+".bias", out))
}

// LinearBare is Linear that leaves the bias of that name, if there is one, to another op.
func (b *Builder) LinearBare(x Value, name string, out int) Value {
	return b.linear(x, name, out, NoRef)
}

func (b *Builder) linear(x Value, name string, out int, bias Ref) Value {
	w := b.weight(name+".weight", out, b.Width(x), Matrix)
	return b.adapted(w, b.add(Node{Op: Linear, In: []Value{x}, W: w, B: bias}, out), x)
}

func fitsLinear(p *Program, n *Node) error {
	w, in, out := &p.Weights[n.W], p.Widths[n.In[0]], p.Widths[n.Out]
	if w.Cols != in || w.Rows != out {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, out, in)
	}
	return vector(p, n.B, out)
}

func (f *Frame) linear(n *Node) {
	if f.height(n.Out) == 0 {
		return // nobody wants logits
	}
	w := &f.P.Weights[n.W]
	bias := f.vector(n.B, w.Rows, 0)
	weights := make([]float32, w.Cols)
	for r := range f.height(n.Out) {
		f.observe(n.W, 0, f.row(n.In[0], r))
	}
	for o := range w.Rows {
		f.Weights.Decode(n.W, o, weights)
		for r := range f.height(n.Out) {
			sum := float64(bias[o])
			for i, x := range f.row(n.In[0], r) {
				sum += float64(weights[i]) * float64(x)
			}
			f.row(n.Out, r)[o] = float32(sum)
		}
	}
}
