package cpu

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// own says whether the CPU has a kernel for an op. For others it runs the reference loop of internal/ir, on one worker.
func own(op ir.Op) bool {
	switch op {
	case ir.Embed, ir.Linear, ir.Norm, ir.RoPE, ir.Attend, ir.GLU, ir.Add, ir.Mul, ir.Scale, ir.SoftCap, ir.Temper,
		ir.Affine, ir.Position, ir.TokenType, ir.Slice, ir.HeadLinear, ir.HeadSlice, ir.HeadJoin, ir.CausalConv,
		ir.SSMScan, ir.DeltaRule, ir.Rows, ir.Route, ir.Experts, ir.Adapt, ir.Around,
		ir.Conv2D, ir.GridNorm, ir.Leaky, ir.XIELU, ir.Clip, ir.Exceed, ir.Level,
		ir.Previous, ir.WKV, ir.HeadDot, ir.Token, ir.Gram, ir.Compress, ir.Balance:
		return true
	}
	return false
}

// checkPlain finds nodes that need matrices or states and have no kernel: their loops cannot run here.
func checkPlain(p *ir.Program) error {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			if !own(n.Op) && (n.Op.KeepsState() || len(n.Matrices()) > 0) {
				return fmt.Errorf("%s: no kernel for %s: %w", &p.Segments[s], n.Op, errors.ErrUnsupported)
			}
		}
	}
	return nil
}

// plain runs a node that has no kernel by its reference loop.
type plain struct {
	ex      *execution
	p       *ir.Program
	n       *ir.Node
	in      []place
	out     place
	wanted  bool
	vectors map[ir.Ref][]float32
}

func (b *binder) plain(n *ir.Node, wanted bool) *plain {
	o := &plain{ex: &b.m.execution, p: b.p.Program, n: n, out: b.layout.place(n.Out), wanted: wanted,
		vectors: map[ir.Ref][]float32{}}
	for _, v := range n.In {
		o.in = append(o.in, b.layout.place(v))
	}
	for _, r := range n.Weights() {
		o.vectors[r] = b.vector(r)
	}
	return o
}

func (o *plain) chunks() int { return min(1, o.ex.rows(o.wanted)) }

// run copies the inputs to where the loop expects them, and its result to its place.
func (o *plain) run(_, _ int) {
	step := o.ex.step
	f := ir.Frame{P: o.p, Values: make([][]float32, len(o.p.Widths)), Tokens: step.Tokens, Wanted: step.Wanted,
		Spans: step.Frame(), Weights: o}
	rows := o.ex.rows(o.wanted)
	for i, v := range o.n.In {
		for r := range rows {
			f.Values[v] = append(f.Values[v], o.ex.at(&o.in[i], r)...)
		}
	}
	f.Values[o.n.Out] = make([]float32, rows*o.out.width)
	f.Run(o.n)
	for r := range rows {
		copy(o.ex.at(&o.out, r), f.Values[o.n.Out][r*o.out.width:])
	}
}

// Decode implements ir.Weights.
func (o *plain) Decode(r ir.Ref, i int, to []float32) { copy(to, o.vectors[r][i*len(to):]) }
