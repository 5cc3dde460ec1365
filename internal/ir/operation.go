package ir

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// operation is all that there is to know of an op. Each one's stands in a file of its own, op_NAME.go, between the
// methods that record the op, what a legal node is, and the plain loop that says what it means.
type operation struct {
	name   string
	inputs [2]int // fewest, most
	w, b   need
	use    Use                             // of w; a bias is always a Vector
	more   func(n *Node) []operand         // weights besides W and B; nil: none
	fits   func(p *Program, n *Node) error // what must hold between widths and arguments
	args   func(n *Node) string            // arguments, in dumps of programs; nil: it has none
	cost   func(p *Program, n *Node) Cost  // what takes long; nil: nothing but its result's values
	loop   func(f *Frame, n *Node)         // what it computes: see Frame.Run
	byRow  bool                            // a row of the result depends on the same row of its inputs only
	keeps  bool                            // it goes on from what it left of the sequence's rows before
	cases  []Case                          // which devices are tested by
}

// operations is the list of ops. Whoever has to know them all asks it: see Ops.
var operations = []*operation{
	Embed: &embedOp, Linear: &linearOp, Norm: &normOp, RoPE: &ropeOp, Attend: &attendOp, GLU: &gluOp, Add: &addOp,
	Mul: &mulOp, Scale: &scaleOp, SoftCap: &softCapOp, Temper: &temperOp, Affine: &affineOp, Position: &positionOp,
	TokenType: &tokenTypeOp, Slice: &sliceOp, HeadLinear: &headLinearOp, HeadSlice: &headSliceOp,
	HeadJoin: &headJoinOp, CausalConv: &causalConvOp, SSMScan: &ssmScanOp, DeltaRule: &deltaRuleOp, Rows: &rowsOp,
	Route: &routeOp, Experts: &expertsOp, Around: &aroundOp,
}

// Case is a use of an op that devices are tested by. Build records it of x, which is n features wide, a multiple of 64;
// so is what it returns. It may open segments of layer 0.
type Case struct {
	Name  string
	Build func(b *Builder, x Value, n int) Value
}

// Cost is what a node computes: multiplications with additions, and numbers that it reads or writes in passing. What it
// reads of weights and writes as its result is not in it.
type Cost struct {
	Products float64 // with weights, for a row
	Scanned  float64 // of a state, for a row
	Seen     float64 // for a row and a position that it sees
	Values   float64 // in passing, for a row
	Looks    float64 // in passing, for a row and a position that it sees
}

// CostOf returns what a node costs.
func (p *Program) CostOf(n *Node) Cost {
	if o := operations[n.Op]; o.cost != nil {
		return o.cost(p, n)
	}
	return Cost{}
}

// costOfMatrix is that of a product with W, for which the input is turned into bytes.
func costOfMatrix(p *Program, n *Node) Cost {
	return Cost{Products: p.valuesOf(n.W), Values: float64(p.Widths[n.In[0]])}
}

func (p *Program) valuesOf(r Ref) float64 {
	return float64(p.Weights[r].Rows) * float64(p.Weights[r].Cols)
}

// Ops lists every Op, for tests that must cover them all.
func Ops() []Op {
	ops := make([]Op, 0, len(operations))
	for op := range operations {
		if op > 0 {
			ops = append(ops, Op(op))
		}
	}
	return ops
}

// Cases lists uses of the op: one at least.
func (op Op) Cases() []Case { return operations[op].cases }

// ByRow says whether a row of the result depends on the same row of the inputs only.
func (op Op) ByRow() bool { return operations[op].byRow }

// KeepsState says whether the op goes on from what it left of the sequence's rows before: see Program.States.
func (op Op) KeepsState() bool { return operations[op].keeps }

// String is the op's name in dumps of programs.
func (op Op) String() string {
	if op == 0 || int(op) >= len(operations) {
		return fmt.Sprintf("op %d", uint8(op))
	}
	return operations[op].name
}

// need says whether a node has a weight in one of its places.
type need uint8

const (
	none need = iota
	optional
	required
)

// operand is a weight that a node has, or could have.
type operand struct {
	w    Ref
	need need
	use  Use
}

// operands lists those of a node.
func (n *Node) operands() []operand {
	o := operations[n.Op]
	all := []operand{{n.W, o.w, o.use}, {n.B, o.b, Vector}}
	if o.more != nil {
		all = append(all, o.more(n)...)
	}
	return all
}

// Weights lists the weights that a node reads.
func (n *Node) Weights() (refs []Ref) {
	for _, at := range n.operands() {
		if at.w != NoRef && !slices.Contains(refs, at.w) {
			refs = append(refs, at.w)
		}
	}
	return refs
}

// Matrices lists the weights of a node's products.
func (n *Node) Matrices() (refs []Ref) {
	for _, at := range n.operands() {
		if at.use == Matrix && at.w != NoRef && !slices.Contains(refs, at.w) {
			refs = append(refs, at.w)
		}
	}
	return refs
}

// whole checks that a node has the arguments of its op.
func (n *Node) whole() error {
	for _, a := range []struct {
		of   []Op
		have bool
	}{{[]Op{RoPE}, n.RoPE != nil}, {[]Op{Attend}, n.Attend != nil}, {[]Op{Route}, n.Route != nil},
		{[]Op{Experts}, n.Experts != nil}, {[]Op{SSMScan, DeltaRule}, n.Scan != nil}} {
		if wants := slices.Contains(a.of, n.Op); wants && !a.have {
			return errors.New("no arguments")
		} else if !wants && a.have {
			return fmt.Errorf("has arguments of %s", a.of[0])
		}
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

// fitsState checks what a node keeps: so many values, which are its own.
func fitsState(p *Program, n *Node, values int) error {
	if n.State < 0 || n.State >= len(p.States) {
		return fmt.Errorf("state %d of %d", n.State, len(p.States))
	}
	s := p.States[n.State]
	if s.Values != values {
		return fmt.Errorf("state %d has %d values, want %d", n.State, s.Values, values)
	}
	if s.Class < 0 || s.Class >= len(p.Classes) || p.Classes[s.Class] != (Class{State: true}) {
		return fmt.Errorf("state %d is of class %d of %+v, want one of states", n.State, s.Class, p.Classes)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
