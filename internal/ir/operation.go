package ir

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// operation describes an op completely. Each op has a file, op_NAME.go, with its operation, the methods that record it,
// the check of its nodes, and the plain loop that defines it.
type operation struct {
	name   string
	inputs [2]int // fewest, most
	w, b   need
	use    Use                             // of w; a bias is always a Vector
	more   func(n *Node) []operand         // weights besides W and B; nil: none
	fits   func(p *Program, n *Node) error // what must hold between widths and arguments
	args   func(n *Node) string            // arguments, in dumps of programs; nil: it has none
	cost   func(p *Program, n *Node) Cost  // what takes long; nil: only the values of its result
	loop   func(f *Frame, n *Node)         // what it computes: see Frame.Run
	byRow  bool                            // a row of the result depends on the same row of its inputs only
	keeps  bool                            // its result depends on a state that the sequence's earlier rows left
	cases  []Case                          // which devices are tested by
}

// operations is the list of ops. Code that has to know all ops reads it: see Ops.
var operations = []*operation{
	Embed: &embedOp, Linear: &linearOp, Norm: &normOp, RoPE: &ropeOp, Attend: &attendOp, GLU: &gluOp, Add: &addOp,
	Mul: &mulOp, Scale: &scaleOp, SoftCap: &softCapOp, Temper: &temperOp, Affine: &affineOp, Position: &positionOp,
	TokenType: &tokenTypeOp, Slice: &sliceOp, HeadLinear: &headLinearOp, HeadSlice: &headSliceOp,
	HeadJoin: &headJoinOp, CausalConv: &causalConvOp, SSMScan: &ssmScanOp, DeltaRule: &deltaRuleOp, Rows: &rowsOp,
	Route: &routeOp, Experts: &expertsOp, Adapt: &adaptOp, Around: &aroundOp,
	Conv2D: &conv2DOp, GridNorm: &gridNormOp, Leaky: &leakyOp, XIELU: &xieluOp, Clip: &clipOp,
	Exceed: &exceedOp, Level: &levelOp,
	Previous: &previousOp, WKV: &wkvOp, HeadDot: &headDotOp, Token: &tokenOp, Gram: &gramOp,
	Compress: &compressOp, Balance: &balanceOp,
}

// Case is a use of an op that devices are tested by. Build records it with input x, which is n features wide, a
// multiple of 64; its result is as wide. It may open segments of layer 0.
type Case struct {
	Name  string
	Build func(b *Builder, x Value, n int) Value
}

// Cost is what a node computes: multiplications with additions, and numbers that it reads or writes in passing. It does
// not count reading weights and writing the result.
type Cost struct {
	Products float64 // with weights, per row
	Scanned  float64 // values of a state, per row
	Seen     float64 // per row and position that the row sees
	Values   float64 // numbers in passing, per row
	Looks    float64 // numbers in passing, per row and position that the row sees
}

// CostOf returns what a node costs.
func (p *Program) CostOf(n *Node) Cost {
	if o := operations[n.Op]; o.cost != nil {
		return o.cost(p, n)
	}
	return Cost{}
}

// costOfMatrix is the cost of a product with W, whose input is first turned into bytes.
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

// ByRow says whether each row of the result depends only on the same row of the inputs.
func (op Op) ByRow() bool { return operations[op].byRow }

// LooksUp says whether the op reads rows of a table: single ones, so that the table may stay where it is.
func (op Op) LooksUp() bool { return operations[op].use == Table }

// KeepsState says whether the op goes on from a state that the sequence's earlier rows left: see Program.States.
func (op Op) KeepsState() bool { return operations[op].keeps }

// String is the op's name in dumps of programs.
func (op Op) String() string {
	if op == 0 || int(op) >= len(operations) {
		return fmt.Sprintf("op %d", uint8(op))
	}
	return operations[op].name
}

// need says whether a node must, may or must not have a weight in one of its places.
type need uint8

const (
	none need = iota
	optional
	required
)

// operand is a place of a node for a weight.
type operand struct {
	w    Ref
	need need
	use  Use
}

// operands lists the places for weights of a node.
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

// whole checks that a node has exactly the arguments of its op.
func (n *Node) whole() error {
	for _, a := range []struct {
		of   []Op
		have bool
	}{{[]Op{RoPE}, n.RoPE != nil}, {[]Op{Attend}, n.Attend != nil}, {[]Op{Route}, n.Route != nil},
		{[]Op{Experts}, n.Experts != nil}, {[]Op{Conv2D}, n.Conv2D != nil},
		{[]Op{XIELU}, n.XIELU != nil}, {[]Op{Gram}, n.Gram != nil}, {[]Op{SSMScan, DeltaRule, WKV}, n.Scan != nil}} {
		if wants := slices.Contains(a.of, n.Op); wants && !a.have {
			return errors.New("no arguments")
		} else if !wants && a.have {
			return fmt.Errorf("has arguments of %s", a.of[0])
		}
	}
	return nil
}

// sameWidths checks that all inputs are as wide as the output, for ops that work feature by feature.
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

// fitsState checks that the state of a node has so many values.
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
