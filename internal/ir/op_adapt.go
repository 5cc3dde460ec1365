package ir

import "fmt"

// adaptOp describes Adapt.
var adaptOp = operation{
	name: "adapt", inputs: [2]int{1, 2}, w: none, b: none, use: 0, fits: fitsAdapt,
	args: func(n *Node) string { return fmt.Sprintf("site=%d", n.Site) },
	loop: (*Frame).adapt, byRow: true,
	cases: []Case{
		{"adapt", func(b *Builder, x Value, n int) Value {
			return b.Act(SiLU, b.adapt("blk.0.a", b.adapt("blk.0.b", b.Scale(x, 2), b.Scale(x, 3)), x))
		}},
		{"adapt a copy", func(b *Builder, x Value, n int) Value {
			y := b.Scale(x, 2)
			return b.Add(b.adapt("blk.0.c", y, x), y)
		}},
		{"adapt a table", func(b *Builder, x Value, n int) Value { return b.adapt("table", b.Scale(x, 2), NoValue) }},
	},
}

// Adaptable has every matrix that is recorded from now on, and every table, followed by an Adapt. Routers and experts
// are not: what they do to a row is no sum.
func (b *Builder) Adaptable() { b.adapts = true }

// adapted follows a product of x, or a row of a table if x is NoValue, by an Adapt where that is wanted.
func (b *Builder) adapted(w Ref, y, x Value) Value {
	name, whole := b.p.Weights[w].Name[:len(b.p.Weights[w].Name)-len(".weight")], b.p.Weights[w].Use
	switch {
	case !b.adapts || name == b.at+"ffn_gate_inp":
		return y
	case x != NoValue && whole&Table != 0:
		name = "output" // the embedding again
	}
	return b.adapt(name, y, x)
}

// adapt records an Adapt of a site with this name. Two nodes of one matrix are one site.
func (b *Builder) adapt(name string, y, x Value) Value {
	s := Site{Name: name, In: b.p.Vocab, Out: b.Width(y), Token: x == NoValue}
	n := Node{Op: Adapt, In: []Value{y}}
	if x != NoValue {
		s.In, n.In = b.Width(x), append(n.In, x)
	}
	for n.Site = range b.p.Sites {
		if b.p.Sites[n.Site] == s {
			return b.pointwise(n)
		}
	}
	n.Site = len(b.p.Sites)
	b.p.Sites = append(b.p.Sites, s)
	return b.pointwise(n)
}

func fitsAdapt(p *Program, n *Node) error {
	if n.Site < 0 || n.Site >= len(p.Sites) {
		return fmt.Errorf("site %d of %d", n.Site, len(p.Sites))
	}
	s := &p.Sites[n.Site]
	in := p.Vocab
	if len(n.In) > 1 {
		in = p.Widths[n.In[1]]
	} else if !p.TakesTokens() {
		return fmt.Errorf("token ids are no input")
	}
	if s.Out != p.Widths[n.Out] || p.Widths[n.In[0]] != s.Out || s.In != in || s.Token != (len(n.In) == 1) {
		return fmt.Errorf("%s is %d×%d, want %d×%d", s.Name, s.Out, s.In, p.Widths[n.Out], in)
	}
	return nil
}

// adapt adds the updates of each sequence's adapters, one after the other in the order of the sequence.
func (f *Frame) adapt(n *Node) {
	for r := range f.height(n.Out) {
		y := f.row(n.Out, r)
		copy(y, f.row(n.In[0], r))
		at := r
		if f.P.Axis(n.Out) == WantedRows {
			at = int(f.Wanted[r])
		}
		for _, a := range f.spanOf(at).Adapters {
			if u := a.Updates[n.Site]; u != nil {
				f.update(n, u, a.Scale, r, y)
			}
		}
	}
}

func (f *Frame) update(n *Node, u *Update, scale float32, r int, y []float32) {
	between, width := make([]float64, u.Rank), Padded(u.Rank)
	if len(n.In) == 1 {
		for k := range between {
			between[k] = float64(u.A.At(int(f.Tokens[r])*width + k))
		}
	} else {
		for i, x := range f.row(n.In[1], r) {
			for k := range between {
				between[k] += float64(u.A.At(i*width+k)) * float64(x)
			}
		}
	}
	for o := range y {
		sum := 0.0
		for k, t := range between {
			sum += float64(u.B.At(k*Padded(len(y))+o)) * t
		}
		y[o] = float32(float64(y[o]) + float64(u.Scale)*float64(scale)*sum)
	}
}

// spanOf is the span that a row of the step belongs to.
func (f *Frame) spanOf(r int) *Span {
	i := 0
	for r >= f.Spans[i].Row+f.Spans[i].Rows {
		i++
	}
	return &f.Spans[i]
}
