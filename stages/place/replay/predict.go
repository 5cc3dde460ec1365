package replay

import (
	"cmp"
	"slices"
)

// predictor guesses which experts a layer will choose from those that the layer before it chose for the same rows: it
// counts what followed what.
type predictor struct {
	follow [][][]float64 // by layer, expert of the layer before it, expert: how often, lately
	seen   [][]float64   // by layer, expert of the layer before it
	worth  []float64     // scratch
	order  []int32

	unproven [][]bool // by layer and expert: read on a guess, and not used yet
	right    float64  // share of the last guesses that were used before they left
	refused  int      // guesses that were not followed
}

const (
	forget  = 0.998
	sure    = 0.35 // how likely an expert must be to be read
	worthIt = 0.7  // share of right guesses from which on they are followed: a wrong one costs a read, and who left for it
	lately  = 0.95 // of the share, how much is left after a guess
	retry   = 64   // of refused guesses one is followed, to see whether they have become better
)

// trusted says whether a guess is worth a read.
func (p *predictor) trusted() bool {
	if p.right >= worthIt {
		return true
	}
	p.refused++
	return p.refused%retry == 0
}

// guessed says that an expert was read on a guess, used that it was needed, and left that it left its slot.
func (p *predictor) guessed(i, expert int) { p.unproven[i][expert] = true }

func (p *predictor) used(i, expert int) { p.judge(i, expert, 1-lately) }

func (p *predictor) left(i, expert int) { p.judge(i, expert, 0) }

func (p *predictor) judge(i, expert int, gain float64) {
	if p.unproven[i][expert] {
		p.unproven[i][expert] = false
		p.right = p.right*lately + gain
	}
}

func newPredictor(experts []int) *predictor {
	p := &predictor{follow: make([][][]float64, len(experts)), seen: make([][]float64, len(experts))}
	p.right = worthIt
	for _, n := range experts {
		p.unproven = append(p.unproven, make([]bool, n))
	}
	for i := 1; i < len(experts); i++ {
		p.seen[i] = make([]float64, experts[i-1])
		for range experts[i-1] {
			p.follow[i] = append(p.follow[i], make([]float64, experts[i]))
		}
	}
	return p
}

// learn is told of a layer's choice. It sees only what was chosen up to now.
func (p *predictor) learn(s *Step, i int) {
	if i == 0 {
		return
	}
	for _, before := range s.Chosen[i-1] {
		p.seen[i][before] = p.seen[i][before]*forget + 1
		follow := p.follow[i][before]
		for e := range follow {
			follow[e] *= forget
		}
		for _, e := range s.Chosen[i] {
			follow[e]++
		}
	}
}

// likely lists the experts of a layer that are likely after a choice of the layer before it, the likeliest first, at
// most so many. The slice is valid until the next call.
func (p *predictor) likely(i int, before []int32, most int) []int32 {
	p.worth = append(p.worth[:0], make([]float64, len(p.follow[i][0]))...)
	for _, b := range before {
		if p.seen[i][b] == 0 {
			continue
		}
		for e, n := range p.follow[i][b] {
			p.worth[e] += n / p.seen[i][b] / float64(len(before))
		}
	}
	p.order = p.order[:0]
	for e, w := range p.worth {
		if w > sure {
			p.order = append(p.order, int32(e))
		}
	}
	slices.SortStableFunc(p.order, func(a, b int32) int { return cmp.Compare(p.worth[b], p.worth[a]) })
	return p.order[:min(most, len(p.order))]
}
