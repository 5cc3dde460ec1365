package cpu

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// routerOp chooses the experts of a row and writes their weights.
type routerOp struct {
	out, x place
	told   place // the experts' numbers
	isTold bool
	args   *ir.RouteArgs
	bias   []float32 // nil: none
	scale  []float32 // by expert, of its weight; nil: none
}

func (b *binder) router(n *ir.Node, out place, in [2]place) *routerOp {
	return &routerOp{out: out, x: in[0], told: in[1], isTold: len(n.In) > 1, args: n.Route, bias: b.vector(n.B),
		scale: b.vector(n.W)}
}

// choice is a worker's memory to choose the experts of one row.
type choice struct {
	scores  []float32 // by expert
	keys    []float32 // by expert: scores with bias, by which experts are chosen
	sums    []float32 // by group
	chosen  []int     // in the order of the choice
	weights []float32 // of chosen
}

// newChoice makes room for the largest of a program's routers.
func newChoice(p *ir.Bound) choice {
	experts := 0
	for i := range p.Segments {
		for _, n := range p.Segments[i].Nodes {
			if n.Op == ir.Route {
				experts = max(experts, p.Widths[n.In[0]])
			}
		}
	}
	return choice{
		scores: make([]float32, experts), keys: make([]float32, experts), sums: make([]float32, experts),
		chosen: make([]int, experts), weights: make([]float32, experts),
	}
}

func (o *routerOp) row(ex *execution, worker, r int) error {
	logits, y := ex.at(&o.x, r), ex.at(&o.out, r)
	if err := ex.finite(logits, "the router's logits"); err != nil {
		return err
	}
	c := &ex.workers[worker].choice
	scores, keys, weights := c.scores[:len(logits)], c.keys[:len(logits)], c.weights[:o.args.Used]
	copy(scores, logits)
	o.score(ex, scores)
	copy(keys, scores)
	if o.bias != nil {
		ex.device.isa.Add(keys, keys, o.bias)
	}
	if o.args.Groups > 0 {
		c.keepGroups(keys, o.args)
	}
	clear(y)
	chosen := c.chosen[:o.args.Used]
	switch {
	case o.args.Scoring == ir.SparseMixer:
		c.mix(ex, chosen, weights, keys)
	case o.isTold:
		for i, x := range ex.at(&o.told, r) {
			chosen[i] = ir.Told(x, len(scores))
			weights[i] = scores[chosen[i]]
		}
	default:
		for i, e := range highest(chosen, keys) {
			weights[i] = scores[e]
		}
	}
	o.weigh(ex, weights)
	for i, e := range chosen {
		weight := weights[i]
		if o.scale != nil {
			weight *= o.scale[e]
		}
		y[e/max(o.args.Neighbours, 1)] += weight
	}
	return nil
}

// score computes scores from logits.
func (o *routerOp) score(ex *execution, x []float32) {
	switch o.args.Scoring {
	case ir.SoftmaxAll:
		ex.softmax(x)
	case ir.SigmoidEach:
		for e, v := range x {
			x[e] = activate(ir.Sigmoid, v)
		}
	case ir.SqrtSoftplus:
		for e, v := range x {
			x[e] = float32(math.Sqrt(ir.Softplus.Of(float64(v))))
		}
	}
}

// weigh computes weights from the scores of the chosen experts.
func (o *routerOp) weigh(ex *execution, w []float32) {
	isa := ex.device.isa
	if o.args.Scoring == ir.SoftmaxChosen {
		ex.softmax(w)
	}
	if o.args.Normalise {
		isa.Divide(w, w, isa.Sum(w))
	}
	isa.Scale(w, w, o.args.Scale)
}

// softmax works in place.
func (ex *execution) softmax(x []float32) {
	isa, top := ex.device.isa, x[0]
	for _, v := range x[1:] {
		top = max(top, v)
	}
	for i := range x {
		x[i] -= top
	}
	isa.Exp(x, x)
	isa.Divide(x, x, isa.Sum(x))
}

// highest lists the indices of the highest values, among equals the first, and sets those values to −∞.
func highest(list []int, values []float32) []int {
	for i := range list {
		best := 0
		for j, v := range values {
			if v > values[best] {
				best = j
			}
		}
		list[i] = best
		values[best] = float32(math.Inf(-1))
	}
	return list
}

// mix chooses as ir.SparseMixer does. Values of chosen experts become −∞.
func (c *choice) mix(ex *execution, chosen []int, weights, values []float32) {
	isa, near := ex.device.isa, c.scores[:len(values)]
	for i := range chosen {
		top := slices.Max(values)
		for e, v := range values {
			near[e] = v - top
			if (top-v)/max(v, -v, top) > ir.Near {
				near[e] = float32(math.Inf(-1))
			}
		}
		isa.Exp(near, near)
		weights[i] = 1 / isa.Sum(near)
		highest(chosen[i:i+1], values)
	}
}

// keepGroups sets the keys of experts outside the best groups to −∞. A group is judged by the sum of its highest keys.
func (c *choice) keepGroups(keys []float32, a *ir.RouteArgs) {
	size, sums := len(keys)/a.Groups, c.sums[:a.Groups]
	for g := range sums {
		sums[g] = slices.Max(keys[g*size:][:size])
		if a.GroupBest == 2 {
			sums[g] = topTwo(keys[g*size:][:size])
		}
	}
	for _, g := range highest(c.chosen[:a.GroupsUsed], sums) {
		sums[g] = float32(math.Inf(1))
	}
	for e := range keys {
		if sums[e/size] != float32(math.Inf(1)) {
			keys[e] = float32(math.Inf(-1))
		}
	}
}

// topTwo is the sum of the two highest values, or the only value.
func topTwo(values []float32) float32 {
	if len(values) == 1 {
		return values[0]
	}
	first, second := values[0], values[1]
	if second > first {
		first, second = second, first
	}
	for _, v := range values[2:] {
		switch {
		case v > first:
			first, second = v, first
		case v > second:
			second = v
		}
	}
	return first + second
}
