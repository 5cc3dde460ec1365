package tiers

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place/foresee"
)

// Experts that are likely to be chosen come while the drive has nothing else to do: the prefetcher sends a guess only
// when nothing is on its way. A few wait there for their turn, since the device's actor computes and does not hear of
// each that lands. Those that wait when their layer has chosen others are forsaken.

const (
	mostGuesses = 4 // that have not landed, of all layers
	inLayer     = 2 // of one
)

// foresight is what guesses are made from, and what has become of them.
type foresight struct {
	*foresee.Predictor
	layers []*shared // by the predictor's layer
	routes []int     // by segment that routes: the predictor's layer; -1: none
	had    []bool    // scratch, by expert
	coming int       // guesses that have not landed
}

// foresight is that of the model's experts that share slots; nil: there are none, or the device foresees nothing.
func (r *Residency) foresight(bound *ir.Bound) *foresight {
	if _, ok := r.cargo.model.(backend.Foreseer); !ok || len(r.cargo.Plan.Parts[0].Shelves) == 0 {
		return nil
	}
	f := &foresight{routes: make([]int, len(bound.Segments))}
	for i := range f.routes {
		f.routes[i] = -1
	}
	var layers []foresee.Layer
	for _, p := range r.cargo.Plan.Parts[0].Shelves {
		s := &r.segment[p.Segment]
		for _, n := range bound.Segments[s.route].Nodes {
			if n.Op == ir.Route {
				s.used = n.Route.Used
			}
		}
		f.routes[s.route] = len(layers)
		f.layers, layers = append(f.layers, s), append(layers, foresee.Layer{Experts: len(s.expert), Used: s.used})
		f.had = append(f.had, make([]bool, max(0, len(s.expert)-len(f.had)))...)
	}
	f.Predictor = foresee.New(layers)
	return f
}

// Begin says which tokens the rows of the next step are; one below 0 is not known.
func (r *Residency) Begin(tokens []int32) {
	if r.ahead != nil {
		r.ahead.Begin(tokens)
		r.guess()
	}
}

// Foresees says whether margins of a route are of use.
func (r *Residency) Foresees(route int) bool { return r.ahead != nil && r.ahead.routes[route] >= 0 }

// Foreseen says what a route makes of the stream that the layer before its own takes in, or, late, leaves.
func (r *Residency) Foreseen(route int, late bool, margins []int8) {
	r.ahead.Scores(r.ahead.routes[route], late, margins)
	r.guess()
}

// chose has the predictor learn what the rows of the step chose in a layer, and forsakes what they did not.
func (r *Residency) chose(s *shared, experts []int32) {
	had := r.ahead.had[:len(s.expert)]
	for e, g := range s.expert {
		h := &r.groups[g]
		had[e] = h.there && !h.guessed
		switch {
		case s.chosen[e] && h.guessed:
			h.guessed = false
			r.ahead.Right()
			r.traffic.right.Add(1)
		case !s.chosen[e] && h.slot >= 0 && !h.there && r.slots[h.slot].asked == guessed:
			r.ahead.coming--
			r.say(h.slot, forsaken)
		}
	}
	r.ahead.Learn(s.layer, experts, had)
}

// guess has likely experts brought, while few are on their way.
func (r *Residency) guess() {
	for r.ahead.coming < mostGuesses {
		l, e, ok := r.ahead.Next(r.has)
		if !ok {
			return
		}
		s := r.ahead.layers[l]
		at := r.spare(s)
		if at < 0 {
			return
		}
		r.ahead.coming++
		r.traffic.guesses.Add(1)
		r.groups[s.expert[e]].guessed = true
		r.bring(s.expert[e], at, guessed)
	}
}

func (r *Residency) has(l, expert int) bool {
	return r.groups[r.ahead.layers[l].expert[expert]].slot >= 0
}

// spare is a slot for a guess: -1: none that could be missed. A row's experts have slots left in any case.
func (r *Residency) spare(s *shared) int {
	r.among = r.among[:0]
	coming, free := 0, -1
	for _, i := range s.shelf {
		switch x := &r.slots[i]; {
		case x.group < 0:
			free = i
		case !r.groups[x.group].there:
			coming++
		case x.leases == 0 && !r.ahead.Keeps(s.layer, r.expert(x.group)):
			r.among = append(r.among, int32(r.expert(x.group)))
		}
	}
	switch {
	case coming >= min(inLayer, len(s.shelf)-s.used):
		return -1
	case free >= 0:
		return free
	case len(r.among) == 0:
		return -1
	}
	return r.groups[s.expert[r.policy.Victim(s.layer, r.among)]].slot
}
