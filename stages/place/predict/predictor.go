package predict

import (
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Layer is a layer with experts: how many, and how many a row uses.
type Layer struct{ Experts, Used int }

// MaxRows is how many rows a step has at most for which experts are guessed: many rows need nearly all.
const MaxRows = 8

// source is what a guess is made from.
type source int

const (
	byTokens source = iota // what the layer chose for them before
	byEarly                // and the scores of the residual stream that the layer before takes in
	byLate                 // and the scores of the residual stream that it leaves
	sources
)

// Terms of a guess. All but the score are 1 or 0.
const (
	always   = iota
	known    // the token was seen before
	last     // the layer chose the expert then
	previous // and the time before
	score    // in standard deviations
	terms
)

// usual is the weight of each term as long as nothing was learned.
var usual = [sources][terms]float64{
	byTokens: {-3.5, -1, 3.5, 2.3, 0},
	byEarly:  {-1.8, -0.6, 2, 1.2, 3},
	byLate:   {-1.5, -0.6, 1.5, 0.9, 4},
}

// rate is the learning rate.
const rate = 0.05

// Thresholds of chances.
const (
	least           = 0.06      // an expert is brought above this chance, if guesses are never in the way
	most            = 0.6       // and above this one, if they often are
	dearer, cheaper = 1.1, 0.95 // factors of that threshold, with each guess that was in the way, or right
	keep            = 0.015     // an expert does not leave above this chance
	reach           = 2         // layers that are looked ahead
)

// Predictor guesses for all layers of a model. One goroutine uses it at a time.
type Predictor struct {
	layers []layer
	next   int     // the first layer that has not chosen
	worth  float32 // the chance above which an expert is brought
	tokens []int32 // of the step's rows
	memory memory
}

type layer struct {
	Layer
	weights [sources][terms]float64
	scores  [sources][]int8 // [rows][experts] of the step, if it has them
	has     [sources]bool
	chances []float32 // by expert
	stale   bool      // chances were computed before the newest step or scores
	chosen  [2][]bool // scratch: what the memory has of a row
	now     []bool    // scratch: what a row chose
}

// New makes a predictor that has learned nothing.
func New(layers []Layer) *Predictor {
	p := &Predictor{layers: make([]layer, len(layers)), tokens: make([]int32, 0, MaxRows), memory: newMemory(layers),
		worth: least}
	for i, l := range layers {
		x := &p.layers[i]
		*x = layer{Layer: l, weights: usual, chances: make([]float32, l.Experts), now: make([]bool, l.Experts)}
		for s := byEarly; s < sources; s++ {
			x.scores[s] = make([]int8, MaxRows*l.Experts)
		}
		for j := range x.chosen {
			x.chosen[j] = make([]bool, l.Experts)
		}
	}
	return p
}

// Begin starts a step with the tokens of its rows; a token below 0 is not known. Nothing is guessed for steps of
// more than MaxRows rows.
func (p *Predictor) Begin(tokens []int32) {
	p.tokens = p.tokens[:0]
	if len(tokens) <= MaxRows {
		p.tokens = append(p.tokens, tokens...)
	}
	p.next = 0
	for i := range p.layers {
		x := &p.layers[i]
		x.has, x.stale = [sources]bool{byTokens: len(p.tokens) > 0}, true
	}
}

// Scores sets the scores that a layer's router gives to the residual stream as the layer before it takes it in, or,
// late, leaves it: margins by row and expert, in units of backend.MarginUnit.
func (p *Predictor) Scores(l int, isLate bool, margins []int8) {
	x, s := &p.layers[l], byEarly
	if isLate {
		s = byLate
	}
	if len(p.tokens) > 0 && len(margins) == len(p.tokens)*x.Experts {
		copy(x.scores[s], margins)
		x.has[s], x.stale = true, true
	}
}

// Next is the expert that is to be brought next: in the first layer that has one above the threshold, the likeliest
// one without a slot.
func (p *Predictor) Next(has func(l, expert int) bool) (l, expert int, ok bool) {
	if len(p.tokens) == 0 {
		return 0, 0, false
	}
	for l = p.next; l < min(p.next+reach, len(p.layers)); l++ {
		best := p.worth
		for e, c := range p.chances(l) {
			if c > best && !has(l, e) {
				expert, best, ok = e, c, true
			}
		}
		if ok {
			return l, expert, true
		}
	}
	return 0, 0, false
}

// Wrong records that a guess was still being read when its layer chose other experts. The more often guesses are in
// the way, the fewer are made.
func (p *Predictor) Wrong() { p.worth = min(most, p.worth*dearer) }

// Right records that a guessed expert was chosen.
func (p *Predictor) Right() { p.worth = max(least, p.worth*cheaper) }

// Keeps says whether an expert is likely enough in this step to keep its slot when another one is brought.
func (p *Predictor) Keeps(l, expert int) bool {
	return len(p.tokens) > 0 && l >= p.next && p.chances(l)[expert] > keep
}

// chances are how likely a layer's experts are to be chosen in this step, by all that is known of it.
func (p *Predictor) chances(l int) []float32 {
	x := &p.layers[l]
	if !x.stale {
		return x.chances
	}
	x.stale = false
	s := x.best()
	clear(x.chances)
	for r := range p.tokens {
		known := p.recall(l, r)
		for e := range x.chances {
			c := float32(chance(x.sum(s, r, e, known)))
			x.chances[e] += c - float32(c*x.chances[e])
		}
	}
	return x.chances
}

// best is the available source that tells most.
func (x *layer) best() source {
	for s := byLate; s > byTokens; s-- {
		if x.has[s] {
			return s
		}
	}
	return byTokens
}

// recall looks up what the layer chose for a row's token before.
func (p *Predictor) recall(l, row int) (known bool) {
	x := &p.layers[l]
	for i := range x.chosen {
		clear(x.chosen[i])
		for _, e := range p.memory.recall(p.tokens[row], l, i) {
			known = true
			x.chosen[i][e-1] = true
		}
	}
	return known
}

func (x *layer) sum(s source, row, e int, isKnown bool) float64 {
	w := &x.weights[s]
	sum := w[always]
	if isKnown {
		sum += w[known]
	}
	if x.chosen[0][e] {
		sum += w[last]
	}
	if x.chosen[1][e] {
		sum += w[previous]
	}
	if s > byTokens {
		sum += float64(w[score] * x.score(s, row, e))
	}
	return sum
}

func (x *layer) score(s source, row, e int) float64 {
	return float64(x.scores[s][row*x.Experts+e]) / backend.MarginUnit
}

func chance(sum float64) float64 { return 1 / (1 + math.Exp(-sum)) }

// Learn records what the rows of the step chose in a layer, [rows][used], -1 where there are fewer, and which
// experts were there without a guess. After that nothing is guessed for the layer in this step.
func (p *Predictor) Learn(l int, chosen []int32, there []bool) {
	x := &p.layers[l]
	p.next = l + 1
	if len(chosen) != len(p.tokens)*x.Used {
		return
	}
	for r := range p.tokens {
		row := chosen[r*x.Used:][:x.Used]
		clear(x.now)
		for _, e := range row {
			if e >= 0 {
				x.now[e] = true
			}
		}
		known := p.recall(l, r)
		for s := range sources {
			if x.has[s] {
				x.learn(s, r, known, there)
			}
		}
		p.memory.keep(p.tokens[r], l, row)
	}
}

// learn moves the weights of a source by one step of gradient descent (logistic regression) towards what the row
// chose, x.now.
func (x *layer) learn(s source, row int, isKnown bool, there []bool) {
	w := &x.weights[s]
	for e, chosen := range x.now {
		if there[e] {
			continue
		}
		step := -rate * chance(x.sum(s, row, e, isKnown))
		if chosen {
			step += rate
		}
		w[always] += step
		if isKnown {
			w[known] += step
		}
		if x.chosen[0][e] {
			w[last] += step
		}
		if x.chosen[1][e] {
			w[previous] += step
		}
		if s > byTokens {
			w[score] += float64(step * x.score(s, row, e))
		}
	}
}
