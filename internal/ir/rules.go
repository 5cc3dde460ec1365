package ir

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// need says whether a node has a weight in one of its places.
type need uint8

const (
	none need = iota
	optional
	required
)

// rule says what a legal node is: how many inputs and which weights it has, and what must hold between their
// widths and the node's arguments.
type rule struct {
	name   string
	inputs [2]int // fewest, most
	w, b   need
	use    Use // of w; a bias is always a Vector
	fits   func(p *Program, n *Node) error
}

// rules has one row for every Op. A program is legal if Check finds nothing against them.
var rules = [lastOp]rule{
	Embed:      {"embed", [2]int{0, 0}, required, none, Table, fitsEmbed},
	Linear:     {"linear", [2]int{1, 1}, required, optional, Matrix, fitsLinear},
	Norm:       {"norm", [2]int{1, 1}, optional, optional, Vector, fitsNorm},
	RoPE:       {"rope", [2]int{1, 1}, optional, none, Vector, fitsRoPE},
	Attend:     {"attend", [2]int{1, 3}, optional, none, Vector, fitsAttend},
	GLU:        {"glu", [2]int{1, 2}, none, none, 0, fitsGLU},
	Add:        {"add", [2]int{2, 2}, none, none, 0, sameWidths},
	Mul:        {"mul", [2]int{2, 2}, none, none, 0, fitsMul},
	Scale:      {"scale", [2]int{1, 1}, none, none, 0, fitsScale},
	SoftCap:    {"softcap", [2]int{1, 1}, none, none, 0, fitsSoftCap},
	Temper:     {"temper", [2]int{1, 1}, none, none, 0, fitsTemper},
	Affine:     {"affine", [2]int{1, 1}, optional, optional, Vector, fitsAffine},
	Position:   {"position", [2]int{1, 1}, required, none, Vector, fitsPosition},
	TokenType:  {"token type", [2]int{1, 1}, required, none, Vector, fitsTokenType},
	Slice:      {"slice", [2]int{1, 1}, none, none, 0, fitsSlice},
	HeadLinear: {"head linear", [2]int{1, 1}, required, none, Matrix, fitsHeadLinear},
	HeadSlice:  {"head slice", [2]int{1, 1}, none, none, 0, fitsHeadSlice},
	HeadJoin:   {"head join", [2]int{2, 2}, none, none, 0, fitsHeadJoin},
	CausalConv: {"causal conv", [2]int{1, 1}, required, optional, Vector, fitsCausalConv},
	SSMScan:    {"ssm scan", [2]int{4, 4}, required, required, Vector, fitsScan},
	DeltaRule:  {"delta rule", [2]int{5, 5}, required, required, Vector, fitsScan},
	Rows:       {"rows", [2]int{1, 1}, none, none, 0, sameWidths},
	Route:      {"route", [2]int{1, 1}, optional, optional, Vector, fitsRoute},
	Experts:    {"experts", [2]int{2, 2}, none, none, 0, fitsExperts},
}

// Ops lists every Op, for tests that must cover them all.
func Ops() []Op {
	ops := make([]Op, 0, lastOp-1)
	for op := Op(1); op < lastOp; op++ {
		ops = append(ops, op)
	}
	return ops
}

// String is the op's name in dumps of programs.
func (op Op) String() string {
	if op == 0 || op >= lastOp {
		return fmt.Sprintf("op %d", uint8(op))
	}
	return rules[op].name
}

func fitsEmbed(p *Program, n *Node) error {
	w := &p.Weights[n.W]
	if w.Cols != p.Widths[n.Out] || w.Rows != p.Vocab {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, p.Vocab, p.Widths[n.Out])
	}
	return nil
}

func fitsLinear(p *Program, n *Node) error {
	w, in, out := &p.Weights[n.W], p.Widths[n.In[0]], p.Widths[n.Out]
	if w.Cols != in || w.Rows != out {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, out, in)
	}
	return vector(p, n.B, out)
}

func fitsNorm(p *Program, n *Node) error {
	width, a := p.Widths[n.In[0]], &n.Norm
	if a.Group <= 0 || width%a.Group != 0 {
		return fmt.Errorf("groups of %d features do not tile %d", a.Group, width)
	}
	if !finite(float64(a.Eps)) || a.Eps < 0 {
		return fmt.Errorf("eps is %v", a.Eps)
	}
	for _, r := range []Ref{n.W, n.B} {
		if r != NoRef && p.Weights[r].Rows*p.Weights[r].Cols == width {
			continue // applied by feature
		}
		if err := vector(p, r, a.Group); err != nil {
			return err
		}
	}
	return sameWidths(p, n)
}

func fitsRoPE(p *Program, n *Node) error {
	a := n.RoPE
	if a == nil {
		return fmt.Errorf("no arguments")
	}
	if a.Heads <= 0 || a.HeadDim <= 0 || a.Heads*a.HeadDim != p.Widths[n.In[0]] {
		return fmt.Errorf("%d heads of %d do not make %d features", a.Heads, a.HeadDim, p.Widths[n.In[0]])
	}
	if a.Dims <= 0 || a.Dims%2 != 0 || a.Dims > a.HeadDim {
		return fmt.Errorf("%d features rotate, want an even number of at most %d", a.Dims, a.HeadDim)
	}
	if len(a.Freq) != a.Dims/2 {
		return fmt.Errorf("%d frequencies for %d pairs", len(a.Freq), a.Dims/2)
	}
	for _, f := range a.Freq {
		if !finite(f) {
			return fmt.Errorf("a frequency is %v", f)
		}
	}
	if !finite(float64(a.Mscale)) {
		return fmt.Errorf("mscale is %v", a.Mscale)
	}
	if err := vector(p, n.W, a.Dims/2); err != nil {
		return err
	}
	return sameWidths(p, n)
}

func fitsAttend(p *Program, n *Node) error {
	a := n.Attend
	if a == nil {
		return fmt.Errorf("no arguments")
	}
	if a.KVHeads <= 0 || a.Heads <= 0 || a.Heads%a.KVHeads != 0 || a.KDim <= 0 || a.VDim <= 0 {
		return fmt.Errorf("%d heads of %d cannot share %d KV heads of %d", a.Heads, a.KDim, a.KVHeads, a.VDim)
	}
	want := []int{a.Heads * a.VDim, a.Heads * a.KDim, a.KVHeads * a.KDim, a.KVHeads * a.VDim}
	got := []int{p.Widths[n.Out]}
	for _, v := range n.In {
		got = append(got, p.Widths[v])
	}
	if len(n.In) == 2 || !slices.Equal(got, want[:len(got)]) {
		return fmt.Errorf("the output, q, k and v have %d features, want %d, or the first two", got, want)
	}
	if a.KV < 0 || a.KV >= len(p.KV) {
		return fmt.Errorf("cache %d of %d", a.KV, len(p.KV))
	}
	kv := p.KV[a.KV]
	if want := (KVLayer{a.KVHeads, a.KDim, a.VDim, kv.Class}); kv != want {
		return fmt.Errorf("cache %d is %+v, want %+v", a.KV, kv, want)
	}
	if kv.Class < 0 || kv.Class >= len(p.Classes) || p.Classes[kv.Class] != a.Class() {
		return fmt.Errorf("cache %d is of class %d of %+v, want %+v", a.KV, kv.Class, p.Classes, a.Class())
	}
	if a.Window < 0 || a.Chunked && a.Window == 0 {
		return fmt.Errorf("window %d", a.Window)
	}
	if a.Both && (a.Window != 0 || !p.Whole) {
		return fmt.Errorf("both ways: window %d, whole texts %t, want none, and whole ones", a.Window, p.Whole)
	}
	if a.SoftCap < 0 || !finite(float64(a.SoftCap)) || !finite(float64(a.Scale)) {
		return fmt.Errorf("soft cap %v, scale %v", a.SoftCap, a.Scale)
	}
	return vector(p, n.W, a.Heads)
}

func fitsGLU(p *Program, n *Node) error {
	if n.Act < SiLU || n.Act > Clamped || n.Act == Clamped && len(n.In) != 2 {
		return fmt.Errorf("activation %d of %d inputs", n.Act, len(n.In))
	}
	return sameWidths(p, n)
}

func fitsMul(p *Program, n *Node) error {
	if p.Widths[n.In[1]] == 1 && p.Widths[n.In[0]] == p.Widths[n.Out] {
		return nil
	}
	return sameWidths(p, n)
}

func fitsRoute(p *Program, n *Node) error {
	a, experts := n.Route, p.Widths[n.In[0]]
	if a == nil {
		return fmt.Errorf("no arguments")
	}
	if a.Scoring < SoftmaxAll || a.Scoring > SparseMixer {
		return fmt.Errorf("scoring %d", a.Scoring)
	}
	if a.Groups != 0 || a.GroupsUsed != 0 {
		if a.Groups <= 0 || experts%a.Groups != 0 || a.GroupsUsed <= 0 || a.GroupsUsed > a.Groups {
			return fmt.Errorf("%d of %d groups of %d experts", a.GroupsUsed, a.Groups, experts)
		}
		if a.GroupBest < 1 || a.GroupBest > 2 {
			return fmt.Errorf("groups as good as their %d best experts, want 1 or 2", a.GroupBest)
		}
		experts = experts / a.Groups * a.GroupsUsed
	}
	if a.Used <= 0 || a.Used > experts {
		return fmt.Errorf("%d experts used of %d", a.Used, experts)
	}
	if !finite(float64(a.Scale)) {
		return fmt.Errorf("scale is %v", a.Scale)
	}
	if a.Scoring == SparseMixer && (a.Groups > 0 || n.B != NoRef || a.Normalise) {
		return errors.New("a sparse mixer has no groups and no bias, and does not normalise")
	}
	if err := errors.Join(vector(p, n.W, p.Widths[n.In[0]]), vector(p, n.B, p.Widths[n.In[0]])); err != nil {
		return err
	}
	return sameWidths(p, n)
}

func fitsExperts(p *Program, n *Node) error {
	e, width, experts := n.Experts, p.Widths[n.In[0]], p.Widths[n.In[1]]
	if n.Act < SiLU || n.Act > Clamped {
		return fmt.Errorf("activation %d", n.Act)
	}
	if e.Used <= 0 || e.Used > experts {
		return fmt.Errorf("%d experts used of %d", e.Used, experts)
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

func fitsTemper(p *Program, n *Node) error {
	if n.Every <= 0 || !finite(float64(n.Factor)) {
		return fmt.Errorf("factor %v every %d positions", n.Factor, n.Every)
	}
	return sameWidths(p, n)
}

func fitsScale(p *Program, n *Node) error {
	if !finite(float64(n.Factor)) {
		return fmt.Errorf("factor is %v", n.Factor)
	}
	return sameWidths(p, n)
}

func fitsSoftCap(p *Program, n *Node) error {
	if !finite(float64(n.Factor)) || n.Factor <= 0 {
		return fmt.Errorf("limit is %v", n.Factor)
	}
	return sameWidths(p, n)
}

func fitsSlice(p *Program, n *Node) error {
	if n.From < 0 || p.Widths[n.In[0]]-n.From < p.Widths[n.Out] {
		return fmt.Errorf("%d features from %d on, of %d", p.Widths[n.Out], n.From, p.Widths[n.In[0]])
	}
	return nil
}

// sameWidths holds for ops that work feature by feature.
func sameWidths(p *Program, n *Node) error {
	for _, v := range n.In {
		if p.Widths[v] != p.Widths[n.Out] {
			return fmt.Errorf("input of %d features, output of %d", p.Widths[v], p.Widths[n.Out])
		}
	}
	return nil
}

// vector checks a weight of n values, or none.
func vector(p *Program, r Ref, n int) error {
	if r == NoRef {
		return nil
	}
	if w := &p.Weights[r]; w.Rows != 1 || w.Cols != n {
		return fmt.Errorf("%s is %d×%d, want a vector of %d", w.Name, w.Rows, w.Cols, n)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
