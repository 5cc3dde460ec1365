package ir

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Scoring makes the scores of experts from their logits.
type Scoring uint8

const (
	SoftmaxAll    Scoring = iota + 1 // over all experts
	SoftmaxChosen                    // over the chosen ones; logits decide which these are
	SigmoidEach                      // 1/(1+e⁻ˣ), each on its own
	// SparseMixer chooses one expert after the other, the best of those left. Its weight is its share of a softmax over
	// all left whose logits are about as good: (best−x)/max(|x|, best) ≤ Near. Source: arXiv:2310.00811, as
	// transformers computes it (modeling_phimoe.py), without the randomness of training.
	SparseMixer
	SqrtSoftplus // √ln(1+eˣ), each on its own: behind those whose numbers shaders know
)

// String is the function's name.
func (s Scoring) String() string {
	names := [...]string{SoftmaxAll: "softmax", SoftmaxChosen: "softmax-chosen", SigmoidEach: "sigmoid",
		SqrtSoftplus: "sqrt-softplus", SparseMixer: "sparse-mixer"}
	if s == 0 || int(s) >= len(names) {
		return fmt.Sprintf("scoring %d", uint8(s))
	}
	return names[s]
}

// Near is the relative distance of logits up to which SparseMixer would choose by chance in training.
const Near = 0.02

// RouteArgs configures Route. The Used experts with the highest scores plus bias are chosen, among equals the lower
// numbers; their weights are their scores without bias. With Groups, the experts are divided into so many groups of
// neighbours, and only those of the GroupsUsed best groups take part: a group's score is the sum of its GroupBest best
// experts.
type RouteArgs struct {
	Scoring            Scoring
	Used               int
	Groups, GroupsUsed int     // 0: no groups
	GroupBest          int     // 1 or 2
	Normalise          bool    // weights are divided by their sum
	Scale              float32 // multiplies the weights at last
	Neighbours         int     // so many neighbours are one expert, whose weight is the sum of theirs; 0: each is one
}

// String shows the choice, then what is done to the weights.
func (a *RouteArgs) String() string {
	s := fmt.Sprintf("%s used=%d", a.Scoring, a.Used)
	if a.Groups > 0 {
		s += fmt.Sprintf(" groups=%d/%d by %d", a.GroupsUsed, a.Groups, a.GroupBest)
	}
	if a.Neighbours > 0 {
		s += fmt.Sprintf(" neighbours=%d", a.Neighbours)
	}
	return s + fmt.Sprintf(" normalise=%t scale=%g", a.Normalise, a.Scale)
}

// routeOp describes Route.
var routeOp = operation{
	name: "route", inputs: [2]int{1, 2}, w: optional, b: optional, use: Vector, fits: fitsRoute,
	loop: (*Frame).route, byRow: true,
	args: func(n *Node) string { return n.Route.String() },
	cases: []Case{
		{"route", func(b *Builder, x Value, n int) Value {
			return b.Route(x, "", RouteArgs{Scoring: SoftmaxAll, Used: 8, Scale: 1})
		}},
		{"route normalised", func(b *Builder, x Value, n int) Value {
			return b.Route(x, "", RouteArgs{Scoring: SoftmaxAll, Used: 5, Normalise: true, Scale: 2.5})
		}},
		{"route chosen", func(b *Builder, x Value, n int) Value {
			return b.Route(x, "", RouteArgs{Scoring: SoftmaxChosen, Used: 4, Scale: 1})
		}},
		{"route ties", func(b *Builder, x Value, n int) Value {
			return b.Route(b.Act(ReLU2, x), "", RouteArgs{Scoring: SoftmaxChosen, Used: n - 9, Scale: 1})
		}},
		{"route groups", func(b *Builder, x Value, n int) Value {
			a := RouteArgs{Scoring: SigmoidEach, Used: 6, Groups: n / 16, GroupsUsed: 3, GroupBest: 2, Normalise: true,
				Scale: 1.5}
			return b.Route(x, "r", a)
		}},
		{"route groups of one", func(b *Builder, x Value, n int) Value {
			return b.Route(x, "r", RouteArgs{Scoring: SigmoidEach, Used: 1, Groups: n, GroupsUsed: 1, GroupBest: 2, Scale: 1})
		}},
		{"route groups by one", func(b *Builder, x Value, n int) Value {
			return b.Route(x, "", RouteArgs{Scoring: SoftmaxAll, Used: 6, Groups: 8, GroupsUsed: 3, GroupBest: 1, Scale: 16})
		}},
		{"route neighbours", func(b *Builder, x Value, n int) Value {
			wide := b.HeadJoin(x, b.Scale(x, 0.9), n)
			return b.Route(wide, "", RouteArgs{Scoring: SoftmaxAll, Used: 5, Normalise: true, Scale: 1, Neighbours: 2})
		}},
		{"route roots", func(b *Builder, x Value, n int) Value {
			return b.Route(x, "r", RouteArgs{Scoring: SqrtSoftplus, Used: 5, Normalise: true, Scale: 1.5})
		}},
		{"route told", func(b *Builder, x Value, n int) Value {
			told := b.Act(ReLU, b.Scale(b.Slice(x, 3, 4), 9)) // some twice
			return b.RouteTold(x, told, RouteArgs{Scoring: SqrtSoftplus, Used: 4, Normalise: true, Scale: 1.5})
		}},
		{"route mixer", func(b *Builder, x Value, n int) Value {
			return b.Route(x, "", RouteArgs{Scoring: SparseMixer, Used: 2, Scale: 1})
		}},
		{"route scaled", func(b *Builder, x Value, n int) Value {
			return b.RouteScaled(x, "s", RouteArgs{Scoring: SoftmaxAll, Used: 5, Normalise: true, Scale: 2})
		}},
	},
}

// Route chooses experts by their logits. bias is the name of a vector that only the choice adds to scores, or empty.
func (b *Builder) Route(logits Value, bias string, a RouteArgs) Value {
	n := Node{Op: Route, In: []Value{logits}, W: NoRef, B: NoRef, Route: &a}
	if bias != "" {
		n.B = b.vector(bias+".bias", b.Width(logits))
	}
	return b.add(n, b.Width(logits)/max(a.Neighbours, 1))
}

// RouteTold is Route of the experts whose numbers told has: the first expert for one below, the last for one beyond.
func (b *Builder) RouteTold(logits, told Value, a RouteArgs) Value {
	return b.add(Node{Op: Route, In: []Value{logits, told}, W: NoRef, B: NoRef, Route: &a}, b.Width(logits))
}

// RouteBy is Route whose bias has this complete name.
func (b *Builder) RouteBy(logits Value, bias string, a RouteArgs) Value {
	n := b.vector(bias, b.Width(logits))
	return b.add(Node{Op: Route, In: []Value{logits}, W: NoRef, B: n, Route: &a}, b.Width(logits))
}

// RouteScaled is Route whose weights are multiplied at last by a vector, given by its complete name.
func (b *Builder) RouteScaled(logits Value, scale string, a RouteArgs) Value {
	w := b.vector(scale, b.Width(logits))
	return b.add(Node{Op: Route, In: []Value{logits}, W: w, B: NoRef, Route: &a}, b.Width(logits))
}

func fitsRoute(p *Program, n *Node) error {
	a, experts := n.Route, p.Widths[n.In[0]]
	if a.Scoring < SoftmaxAll || a.Scoring > SqrtSoftplus {
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
	if all := p.Widths[n.In[0]]; a.Neighbours < 0 || max(a.Neighbours, 1)*p.Widths[n.Out] != all {
		return fmt.Errorf("%d neighbours are an expert, %d logits make %d weights", a.Neighbours, all, p.Widths[n.Out])
	}
	if a.Scoring == SparseMixer && (a.Groups > 0 || n.B != NoRef || a.Normalise) {
		return errors.New("a sparse mixer has no groups and no bias, and does not normalise")
	}
	if len(n.In) > 1 && (a.Groups > 0 || a.Neighbours > 0 || n.B != NoRef || a.Scoring == SparseMixer ||
		p.Widths[n.In[1]] != a.Used) {
		return fmt.Errorf("told %d experts of %d, by %s", p.Widths[n.In[1]], a.Used, a)
	}
	return errors.Join(vector(p, n.W, p.Widths[n.In[0]]), vector(p, n.B, p.Widths[n.In[0]]))
}

// route writes the weights of the chosen experts of each row; the others' stay 0.
func (f *Frame) route(n *Node) {
	all := f.P.Widths[n.In[0]]
	bias, factors := f.vector(n.B, all, 0), f.vector(n.W, all, 1)
	for r := range f.height(n.Out) {
		var told []float32
		if len(n.In) > 1 {
			told = f.row(n.In[1], r)
		}
		chosen, weights := n.Route.Choose(f.row(n.In[0], r), bias, told...)
		for i, e := range chosen {
			f.row(n.Out, r)[e/max(n.Route.Neighbours, 1)] += float32(weights[i] * float64(factors[e]))
		}
	}
}

// Told is the number of the expert that a feature has, of so many. One that is no number is told the first.
func Told(x float32, experts int) int {
	if !(x > 0) {
		return 0
	}
	return int(min(x, float32(experts-1)))
}

// Choose lists the experts of a row by its logits, or those that it is told, and their weights.
func (a *RouteArgs) Choose(logits, bias []float32, told ...float32) (chosen []int, weights []float64) {
	all := make([]int, len(logits))
	scores := make([]float64, len(logits)) // softmax, sigmoid or logits: experts are chosen by them, and weighed
	for e, x := range logits {
		all[e], scores[e] = e, float64(x)
		if a.Scoring == SigmoidEach {
			scores[e] = Sigmoid.Of(float64(x))
		}
		if a.Scoring == SqrtSoftplus {
			scores[e] = math.Sqrt(Softplus.Of(float64(x)))
		}
	}
	if a.Scoring == SparseMixer {
		return a.mix(scores)
	}
	if a.Scoring == SoftmaxAll {
		softmax(scores, all)
	}
	for _, x := range told {
		chosen = append(chosen, Told(x, len(scores)))
	}
	if len(told) == 0 {
		chosen = choose(a, scores, bias)
	}
	if a.Scoring == SoftmaxChosen {
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
		weights = append(weights, scores[e]/total*float64(a.Scale))
	}
	return chosen, weights
}

// mix implements SparseMixer: it chooses one expert after another, and weighs each among those about as good.
func (a *RouteArgs) mix(logits []float64) (chosen []int, weights []float64) {
	for range a.Used {
		top, sum := best(logits, 1)[0], 0.0
		for _, x := range logits {
			if far := (logits[top] - x) / math.Max(math.Abs(x), logits[top]); !(far > Near) { // of zeros it is no number
				sum += math.Exp(x - logits[top])
			}
		}
		chosen, weights = append(chosen, top), append(weights, float64(a.Scale)/sum)
		logits[top] = math.Inf(-1)
	}
	return chosen, weights
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
func choose(a *RouteArgs, scores []float64, bias []float32) []int {
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
