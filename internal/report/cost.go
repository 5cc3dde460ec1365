package report

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Load describes steps by sums over them.
type Load struct {
	Steps, Rows, Wanted float64
	Sequences           float64 // that have rows
	Positions           float64 // of caches that a step can see
	Seen                float64 // positions that rows attend to
}

// Traffic is the least number of bytes that steps read from memory, and their operations: a multiplication and an
// addition count as two.
type Traffic struct{ Bytes, Ops float64 }

// Cost returns the traffic of a load by kind of segment: weights count once a step, the cache once a sequence.
// Experts are assumed to be chosen evenly, since the choice is not known. positionBytes is the size of a position in
// the cache of all layers.
func Cost(p *ir.Bound, positionBytes float64, l Load) (cost [ir.SegmentKinds]Traffic) {
	var cached float64 // values of a position
	for _, k := range p.KV {
		cached += float64(k.KVHeads * (k.KDim + k.VDim))
	}
	c := coster{p: p, load: l, valueBytes: positionBytes / max(cached, 1)}
	for i := range p.Segments {
		s := &p.Segments[i]
		c.rows, c.steps = l.Rows, l.Steps
		if s.Kind.Ends() {
			c.rows, c.steps = l.Wanted, min(l.Steps, l.Wanted)
		}
		for j := range s.Nodes {
			t := c.node(&s.Nodes[j])
			cost[s.Kind].Bytes += t.Bytes
			cost[s.Kind].Ops += t.Ops
		}
	}
	return cost
}

type coster struct {
	p           *ir.Bound
	load        Load
	valueBytes  float64
	rows, steps float64 // of the segment
}

func (c *coster) node(n *ir.Node) Traffic {
	switch {
	case n.Op.LooksUp():
		looks := float64(c.p.Widths[n.Out]) / float64(c.p.Weights[n.W].Cols)
		return Traffic{Bytes: c.rows * looks * c.bytes(n.W) / float64(c.p.Weights[n.W].Rows)}
	case n.Op == ir.Attend:
		return c.attend(n.Attend)
	case n.Op.KeepsState():
		return c.state(n)
	case n.Op == ir.Experts:
		return c.experts(n.Experts)
	}
	var t Traffic
	for _, r := range n.Matrices() {
		t.Bytes, t.Ops = t.Bytes+c.steps*c.bytes(r), t.Ops+2*c.rows*c.values(r)
	}
	return t
}

func (c *coster) attend(a *ir.AttendArgs) Traffic {
	positions, seen := c.load.Positions, c.load.Seen
	if w := float64(a.Window); w > 0 {
		positions, seen = min(positions, w*c.load.Sequences), min(seen, w*c.rows)
	}
	return Traffic{
		Bytes: positions * float64(a.KVHeads*(a.KDim+a.VDim)) * c.valueBytes,
		Ops:   2 * seen * float64(a.Heads*(a.KDim+a.VDim)),
	}
}

// state returns the traffic of a recurrent state, which is read and written once for each sequence of a step. For
// each element and row, a convolution takes one product, a scan a decay, an update and a read, and a delta rule
// another read.
func (c *coster) state(n *ir.Node) Traffic {
	values, each := float64(c.p.States[n.State].Values), 5.0
	switch n.Op {
	case ir.CausalConv:
		each = 2
	case ir.DeltaRule:
		each = 7
	}
	return Traffic{Bytes: 2 * 4 * values * c.load.Sequences, Ops: each * values * c.rows}
}

// experts returns the traffic of the experts that n rows, each choosing k of E, touch on average: E·(1−(1−k/E)ⁿ).
func (c *coster) experts(e *ir.ExpertsArgs) (t Traffic) {
	for _, r := range e.Matrices() {
		chosen := float64(e.Used) / float64(max(c.p.Weights[r].Experts, 1))
		touched := 1 - math.Pow(1-chosen, c.rows/max(c.steps, 1))
		t.Bytes += c.steps * touched * c.bytes(r)
		t.Ops += 2 * c.rows * chosen * c.values(r)
	}
	return t
}

func (c *coster) values(r ir.Ref) float64 {
	w := &c.p.Weights[r]
	return float64(w.Rows) * float64(w.Cols)
}

func (c *coster) bytes(r ir.Ref) float64 {
	t := c.p.Types[r]
	return c.values(r) * float64(t.Bytes()) / float64(max(t.Block(), 1))
}
