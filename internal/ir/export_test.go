package ir

// AddToy adds an op as a file of its own would: all that there is to know of it stands here. It mirrors each row, and
// multiplies by a weight feature by feature.
func AddToy() (toy Op, remove func()) {
	toy = Op(len(operations))
	operations = append(operations, &operation{
		name: "toy", inputs: [2]int{1, 1}, w: required, use: Vector, byRow: true,
		fits: func(p *Program, n *Node) error {
			if err := vector(p, n.W, p.Widths[n.Out]); err != nil {
				return err
			}
			return sameWidths(p, n)
		},
		loop: func(f *Frame, n *Node) {
			w := f.table(n.W)
			for r := range f.height(n.Out) {
				x, y := f.row(n.In[0], r), f.row(n.Out, r)
				for i := range x {
					y[i] = w[i] * x[len(x)-1-i]
				}
			}
		},
		cases: []Case{{"toy", func(b *Builder, x Value, n int) Value {
			mirror := func(x Value, name string) Value {
				return b.add(Node{Op: toy, In: []Value{x}, W: b.vector(name, n), B: NoRef}, n)
			}
			return mirror(b.Add(mirror(b.Linear(x, "w", n), "one"), x), "two")
		}}},
	})
	return toy, func() { operations = operations[:toy] }
}
