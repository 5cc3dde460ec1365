package ir

import "fmt"

// ExpertsArgs configures Experts. The matrices of all experts are stacked: [experts·ffn][width] twice, and
// [experts·width][ffn]. Biases have a row for each expert, or are NoRef. Up may be Gate: then an expert's rows of Up
// come after its rows of Gate, [experts·2·ffn][width], without biases. Up may be NoRef: then there is no gate, and an
// expert is Downₑ·act(Gateₑ·x₀[r]).
type ExpertsArgs struct {
	Used                       int     // most experts of a row
	Before                     bool    // y[r] = Σₑ Downₑ·act(Gateₑ·w·x₀[r], Upₑ·w·x₀[r]) with w = x₁[r,e]; no biases
	UpCap                      float32 // of SiTU: x₁ is limited smoothly to ±UpCap; 0: it is not
	Gate, Up, Down             Ref
	GateBias, UpBias, DownBias Ref
}

// Joined says whether Gate and Up are one weight.
func (e *ExpertsArgs) Joined() bool { return e.Gate == e.Up }

// Ungated reports whether experts have no gate: Gate then holds their only input matrix, and Up is NoRef.
func (e *ExpertsArgs) Ungated() bool { return e.Up == NoRef }

// Takes lists the weights that multiply what goes into experts.
func (e *ExpertsArgs) Takes() []Ref {
	if e.Joined() || e.Ungated() {
		return []Ref{e.Gate}
	}
	return []Ref{e.Gate, e.Up}
}

// Matrices lists the weights of products.
func (e *ExpertsArgs) Matrices() []Ref { return append(e.Takes(), e.Down) }

// costOfExperts counts the experts that a row uses.
func costOfExperts(p *Program, n *Node) Cost {
	used, c := float64(n.Experts.Used), Cost{}
	for _, r := range n.Experts.Matrices() {
		c.Products += p.valuesOf(r) * used / float64(p.Weights[r].Experts)
	}
	c.Values = used * float64(p.Widths[n.In[0]]+4*p.Weights[n.Experts.Down].Cols+p.Widths[n.Out])
	return c
}

// expertsOp describes Experts.
var expertsOp = operation{
	name: "experts", inputs: [2]int{2, 2}, w: none, b: none, use: 0, fits: fitsExperts,
	more: expertsWeights, loop: (*Frame).experts, cost: costOfExperts, byRow: true,
	args: func(n *Node) string {
		s := fmt.Sprintf("%s used=%d", n.activation(), n.Experts.Used)
		if n.Experts.Before {
			s += " before"
		}
		if n.Experts.Ungated() {
			s += " ungated"
		}
		if n.Experts.UpCap > 0 {
			s += fmt.Sprintf(" up to %g", n.Experts.UpCap)
		}
		return s
	},
	cases: []Case{
		{"experts", func(b *Builder, x Value, n int) Value { return caseExperts(b, x, 7, 3, SiLU) }},
		{"experts all", func(b *Builder, x Value, n int) Value { return caseExperts(b, x, 3, 3, Clamped) }},
		{"experts one", func(b *Builder, x Value, n int) Value { return caseExperts(b, x, 40, 1, GELU) }},
		{"experts within", func(b *Builder, x Value, n int) Value {
			b.FFN()
			w := b.Route(b.Linear(x, "ffn_gate_inp", 5), "", RouteArgs{Scoring: SigmoidEach, Used: 2, Scale: 1})
			return b.ExpertsWithin(x, w, "gate", "up", "down", 64, 2, SiLUClipped, 0.1)
		}},
		{"experts situ", func(b *Builder, x Value, n int) Value { return caseSiTU(b, x, 3) }},
		{"experts situ, up as it is", func(b *Builder, x Value, n int) Value { return caseSiTU(b, x, 0) }},
		{"experts joined", func(b *Builder, x Value, n int) Value { return caseJoined(b, x, 64) }},
		{"experts joined, narrow", func(b *Builder, x Value, n int) Value { return caseJoined(b, x, 48) }},
		{"experts ungated", func(b *Builder, x Value, n int) Value { return caseUngated(b, x, 7, 3, ReLU2) }},
		{"experts ungated, one", func(b *Builder, x Value, n int) Value { return caseUngated(b, x, 40, 1, GELU) }},
		{"experts before", func(b *Builder, x Value, n int) Value {
			b.FFN()
			w := b.Route(b.Linear(x, "ffn_gate_inp", 5), "", RouteArgs{Scoring: SigmoidEach, Used: 2, Scale: 1})
			return b.ExpertsBefore(x, w, "gate", "up", "down", 64, 2, SiLU)
		}},
	},
}

// Experts is a mixture: the gated feed-forward networks, of ffn features each, that Route chose, at most used for each
// row, summed by its weights. The names are those of the stacked matrices; each one's bias is added if the file has it.
// Networks that all rows share are recorded before, and so belong to the route segment. If gate and up have one name,
// they are one stack: see ExpertsArgs.
func (b *Builder) Experts(x, weights Value, gate, up, down string, ffn, used int, act Act) Value {
	return b.experts(x, weights, [3]string{gate, up, down}, ffn, act, ExpertsArgs{Used: used})
}

// ExpertsWithin is Experts of an activation that has a limit; without one (0) it is SiLU.
func (b *Builder) ExpertsWithin(x, weights Value, gate, up, down string, ffn, used int, act Act, limit float32) Value {
	if limit == 0 {
		act = SiLU
	}
	y := b.Experts(x, weights, gate, up, down, ffn, used, act)
	nodes := b.segment().Nodes
	nodes[len(nodes)-1].Factor = limit
	return y
}

// ExpertsSiTU is Experts that activate by SiTU: β, and what limits up (0: nothing).
func (b *Builder) ExpertsSiTU(x, weights Value, gate, up, down string, ffn, used int, beta, upCap float32) Value {
	e := ExpertsArgs{Used: used, UpCap: upCap}
	y := b.experts(x, weights, [3]string{gate, up, down}, ffn, SiTU, e)
	nodes := b.segment().Nodes
	nodes[len(nodes)-1].Factor = beta
	return y
}

// ExpertsBefore is Experts whose weights multiply what goes into the networks. They have no biases.
func (b *Builder) ExpertsBefore(x, weights Value, gate, up, down string, ffn, used int, act Act) Value {
	return b.experts(x, weights, [3]string{gate, up, down}, ffn, act, ExpertsArgs{Used: used, Before: true})
}

// ExpertsUngated is Experts of networks without a gate: down·act(up·x).
func (b *Builder) ExpertsUngated(x, weights Value, up, down string, ffn, used int, act Act) Value {
	return b.experts(x, weights, [3]string{up, "", down}, ffn, act, ExpertsArgs{Used: used})
}

func (b *Builder) experts(x, weights Value, names [3]string, ffn int, act Act, e ExpertsArgs) Value {
	if s := b.segment(); s.Kind == SegFFN {
		s.Kind = SegRoute
	}
	b.open(SegExperts, b.segment().Layer)
	width, n := b.Width(x), b.Width(weights)
	switch names[1] {
	case names[0]:
		e.Gate, e.GateBias = b.stack(names[0], n, 2*ffn, width, false)
		e.Up, e.UpBias = e.Gate, NoRef
	case "":
		e.Gate, e.GateBias = b.stack(names[0], n, ffn, width, true)
		e.Up, e.UpBias = NoRef, NoRef
	default:
		e.Gate, e.GateBias = b.stack(names[0], n, ffn, width, !e.Before)
		e.Up, e.UpBias = b.stack(names[1], n, ffn, width, !e.Before)
	}
	e.Down, e.DownBias = b.stack(names[2], n, width, ffn, !e.Before)
	return b.add(Node{Op: Experts, In: []Value{x, weights}, W: NoRef, B: NoRef, Act: act, Experts: &e}, width)
}

// stack names the matrices of experts, rows × cols each, and their biases, if they may have them.
func (b *Builder) stack(name string, experts, rows, cols int, biased bool) (w, bias Ref) {
	w, bias = b.weight(name+".weight", experts*rows, cols, Matrix), NoRef
	b.p.Weights[w].Experts = experts
	if biased && b.Has(name+".bias") {
		bias = b.weight(name+".bias", experts, rows, Vector)
	}
	return w, bias
}

// expertsWeights lists the weights of ExpertsArgs.
func expertsWeights(n *Node) []operand {
	e := n.Experts
	return []operand{{e.Gate, required, Matrix}, {e.Up, optional, Matrix}, {e.Down, required, Matrix},
		{e.GateBias, optional, Vector}, {e.UpBias, optional, Vector}, {e.DownBias, optional, Vector}}
}

func fitsExperts(p *Program, n *Node) error {
	e, width, experts := n.Experts, p.Widths[n.In[0]], p.Widths[n.In[1]]
	if n.Act < SiLU || n.Act > ClippedSiLU && n.Act != SiTU {
		return fmt.Errorf("activation %d", n.Act)
	}
	if !finite(float64(e.UpCap)) || e.UpCap < 0 || e.UpCap > 0 && n.Act != SiTU {
		return fmt.Errorf("up of %s is limited to %v", n.Act, e.UpCap)
	}
	if err := n.fitsLimit(); err != nil {
		return err
	}
	if e.Used <= 0 || e.Used > experts {
		return fmt.Errorf("%d experts used of %d", e.Used, experts)
	}
	if e.Ungated() && (e.Before || n.Act == Clamped || n.Act.Limited() || e.UpBias != NoRef) {
		return fmt.Errorf("experts without a gate: activation %s, before %t, bias %d", n.Act, e.Before, e.UpBias)
	}
	ffn, each := p.Weights[e.Down].Cols, 1
	if e.Joined() {
		each = 2
	}
	for _, m := range []struct {
		w, bias    Ref
		rows, cols int
	}{
		{e.Gate, e.GateBias, each * ffn, width}, {e.Up, e.UpBias, each * ffn, width},
		{e.Down, e.DownBias, p.Widths[n.Out], ffn},
	} {
		if m.w == NoRef {
			continue
		}
		if w := &p.Weights[m.w]; w.Experts != experts || w.Rows != experts*m.rows || w.Cols != m.cols {
			return fmt.Errorf("%s is %d×%d of %d experts, want %d×%d of %d", w.Name, w.Rows, w.Cols, w.Experts,
				experts*m.rows, m.cols, experts)
		}
		if m.bias == NoRef {
			continue
		}
		if e.Before {
			return fmt.Errorf("%s: no bias of experts whose input is weighed", p.Weights[m.bias].Name)
		}
		if e.Joined() && m.bias != e.DownBias {
			return fmt.Errorf("%s: no bias of gate and up in one", p.Weights[m.bias].Name)
		}
		if w := &p.Weights[m.bias]; w.Rows != experts || w.Cols != m.rows {
			return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, experts, m.rows)
		}
	}
	return nil
}

// experts runs each row through the networks of its experts, in ascending order.
func (f *Frame) experts(n *Node) {
	for r := range f.height(n.Out) {
		x, y := f.row(n.In[0], r), f.row(n.Out, r)
		sums := make([]float64, len(y))
		for e, weight := range f.row(n.In[1], r) {
			if weight == 0 {
				continue
			}
			in := x
			if n.Experts.Before {
				in = scaled(x, weight)
				weight = 1
			}
			for i, out := range f.expert(n, e, in) {
				sums[i] += float64(weight) * float64(out)
			}
		}
		for i, sum := range sums {
			y[i] = float32(sum)
		}
	}
}

func scaled(x []float32, factor float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = factor * v
	}
	return y
}

// expert is the feed-forward network of one expert.
func (f *Frame) expert(n *Node, e int, x []float32) []float32 {
	a := n.Experts
	h := f.stacked(a.Gate, a.GateBias, e, x)
	var up []float32
	switch {
	case a.Joined():
		h, up = h[:len(h)/2], h[len(h)/2:]
	case !a.Ungated():
		up = f.stacked(a.Up, a.UpBias, e, x)
	}
	for i := range h {
		if up == nil {
			h[i] = float32(n.Act.Of(float64(h[i])))
		} else {
			h[i] = float32(n.gate(float64(h[i]), float64(up[i])))
		}
	}
	return f.stacked(a.Down, a.DownBias, e, h)
}

// stacked multiplies by matrix e of a stack, and adds its bias.
func (f *Frame) stacked(matrix, bias Ref, e int, x []float32) []float32 {
	f.observe(matrix, e, x)
	w := &f.P.Weights[matrix]
	y, row := make([]float32, w.Rows/w.Experts), make([]float32, w.Cols)
	if bias != NoRef {
		f.Weights.Decode(bias, e, y)
	}
	for o := range y {
		f.Weights.Decode(matrix, e*len(y)+o, row)
		sum := float64(y[o])
		for i, v := range x {
			sum += float64(row[i]) * float64(v)
		}
		y[o] = float32(sum)
	}
	return y
}

// caseExperts sends x through used of so many experts of 64 features, with biases if the builder has all.
func caseExperts(b *Builder, x Value, experts, used int, act Act) Value {
	b.FFN()
	a := RouteArgs{Scoring: SoftmaxAll, Used: used, Normalise: true, Scale: 1}
	w := b.Route(b.Linear(x, "ffn_gate_inp", experts), "", a)
	return b.Experts(x, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", 64, used, act)
}

// caseSiTU sends x through 2 of 5 experts that activate by SiTU.
func caseSiTU(b *Builder, x Value, upCap float32) Value {
	b.FFN()
	w := b.Route(b.Linear(x, "ffn_gate_inp", 5), "", RouteArgs{Scoring: SigmoidEach, Used: 2, Scale: 1})
	return b.ExpertsSiTU(x, w, "gate", "up", "down", 64, 2, 0.7, upCap)
}

// caseUngated is caseExperts without a gate.
func caseUngated(b *Builder, x Value, experts, used int, act Act) Value {
	b.FFN()
	w := b.Route(b.Linear(x, "ffn_gate_inp", experts), "", RouteArgs{Scoring: SoftmaxAll, Used: used, Scale: 1})
	return b.ExpertsUngated(x, w, "ffn_up_exps", "ffn_down_exps", 64, used, act)
}

// caseJoined sends x through 2 of 6 experts of so many features, whose gate and up are one weight.
func caseJoined(b *Builder, x Value, ffn int) Value {
	b.FFN()
	w := b.Route(b.Linear(x, "ffn_gate_inp", 6), "", RouteArgs{Scoring: SoftmaxChosen, Used: 2, Scale: 1})
	return b.Experts(x, w, "gate_up", "gate_up", "down", ffn, 2, GELU)
}
