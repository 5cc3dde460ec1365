package ref

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// route writes the weights of the chosen experts of each row; the others' stay 0.
func (m *model) route(n *ir.Node) {
	a, bias, factors := n.Route, m.vector(n.B, m.p.Widths[n.Out], 0), m.vector(n.W, m.p.Widths[n.Out], 1)
	for r := range m.height(n.Out) {
		logits := m.row(n.In[0], r)
		all := make([]int, len(logits))
		scores := make([]float64, len(logits)) // by which experts are chosen, and which weigh them
		for e, x := range logits {
			all[e], scores[e] = e, float64(x)
			if a.Scoring == ir.SigmoidEach {
				scores[e] = activate(ir.Sigmoid, float64(x))
			}
		}
		if a.Scoring == ir.SoftmaxAll {
			softmax(scores, all)
		}
		if a.Scoring == ir.SparseMixer {
			m.mix(n, r, scores)
			continue
		}
		chosen := choose(a, scores, bias)
		if a.Scoring == ir.SoftmaxChosen {
			softmax(scores, chosen)
		}
		total := 0.0
		for _, e := range chosen {
			total += scores[e]
		}
		if !a.Normalise {
			total = 1
		}
		for _, e := range chosen {
			m.row(n.Out, r)[e] = float32(scores[e] / total * float64(a.Scale) * float64(factors[e]))
		}
	}
}

// mix chooses one expert after another, and weighs each among those that are about as good.
func (m *model) mix(n *ir.Node, r int, logits []float64) {
	for range n.Route.Used {
		top, sum := best(logits, 1)[0], 0.0
		for _, x := range logits {
			if far := (logits[top] - x) / math.Max(math.Abs(x), logits[top]); !(far > ir.Near) { // of zeros it is no number
				sum += math.Exp(x - logits[top])
			}
		}
		m.row(n.Out, r)[top] = float32(float64(n.Route.Scale) / sum)
		logits[top] = math.Inf(-1)
	}
}

// softmax replaces the scores of the listed experts.
func softmax(scores []float64, experts []int) {
	highest, total := math.Inf(-1), 0.0
	for _, e := range experts {
		highest = math.Max(highest, scores[e])
	}
	for _, e := range experts {
		scores[e] = math.Exp(scores[e] - highest)
		total += scores[e]
	}
	for _, e := range experts {
		scores[e] /= total
	}
}

// choose lists the experts with the best scores.
func choose(a *ir.RouteArgs, scores []float64, bias []float32) []int {
	biased := make([]float64, len(scores))
	for e := range scores {
		biased[e] = scores[e] + float64(bias[e])
	}
	if a.Groups == 0 {
		return best(biased, a.Used)
	}
	size := len(scores) / a.Groups
	sums := make([]float64, a.Groups)
	for g := range sums {
		group := biased[g*size:][:size]
		for _, e := range best(group, min(a.GroupBest, size)) {
			sums[g] += group[e]
		}
	}
	used := best(sums, a.GroupsUsed)
	for e := range biased {
		if !slices.Contains(used, e/size) {
			biased[e] = math.Inf(-1)
		}
	}
	return best(biased, a.Used)
}

// best lists the indices of the n highest values, of equal ones the first.
func best(values []float64, n int) []int {
	list := make([]int, len(values))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(values[j], values[i]) })
	return list[:n]
}

// experts runs each row through the networks of its experts, in ascending order.
func (m *model) experts(n *ir.Node) {
	for r := range m.height(n.Out) {
		x, y := m.row(n.In[0], r), m.row(n.Out, r)
		sums := make([]float64, len(y))
		for e, weight := range m.row(n.In[1], r) {
			if weight == 0 {
				continue
			}
			in := x
			if n.Experts.Before {
				in = scaled(x, weight)
				weight = 1
			}
			for i, out := range m.expert(n, e, in) {
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
func (m *model) expert(n *ir.Node, e int, x []float32) []float32 {
	a := n.Experts
	h := m.stacked(a.Gate, a.GateBias, e, x)
	var up []float32
	if a.Joined() {
		h, up = h[:len(h)/2], h[len(h)/2:]
	} else {
		up = m.stacked(a.Up, a.UpBias, e, x)
	}
	for i := range h {
		h[i] = float32(gate(n.Act, float64(h[i]), float64(up[i])))
	}
	return m.stacked(a.Down, a.DownBias, e, h)
}

// stacked multiplies by matrix e of a stack, and adds its bias.
func (m *model) stacked(matrix, bias ir.Ref, e int, x []float32) []float32 {
	m.observe(matrix, e, x)
	w := &m.weights[matrix]
	y, row := make([]float32, w.Rows/w.Experts), make([]float32, w.Cols)
	if bias != ir.NoRef {
		m.weights[bias].row(y, e)
	}
	for o := range y {
		w.row(row, e*len(y)+o)
		sum := float64(y[o])
		for i, v := range x {
			sum += float64(row[i]) * float64(v)
		}
		y[o] = float32(sum)
	}
	return y
}
