package tiers

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place/predict"
)

// Experts that are likely to be chosen are brought while the drive has nothing else to do: the prefetcher begins a
// guess only when nothing is on its way. A few guesses wait at the prefetcher for their turn: the device's actor, busy
// computing, could not send the next one whenever one lands. Guesses that still wait when their layer has chosen other
// experts are forsaken.

const (
	mostGuesses = 4 // guesses that have not landed, of all layers
	inLayer     = 2 // of one
)

// foresight asks for experts that the predictor holds likely, and tells it which of them were used.
type foresight struct {
	*predict.Predictor
	o      *occupancy
	layers []*shared // by the predictor's layer
	routes []int     // by segment that routes: the predictor's layer; -1: none
	had    []bool    // scratch, by expert
}

// newForesight returns the foresight of a model's experts that share slots; nil: there are none, or the device
// foresees no route.
func newForesight(o *occupancy) *foresight {
	shelves, bound := o.cargo.Plan.Shelves, o.cargo.Bound
	if len(shelves) == 0 || !foreseesAny(o.cargo.model, len(bound.Segments)) {
		return nil
	}
	f := &foresight{o: o, routes: make([]int, len(bound.Segments))}
	for i := range f.routes {
		f.routes[i] = -1
	}
	var layers []predict.Layer
	for _, p := range shelves {
		s := &o.segment[p.Segment]
		for _, n := range bound.Segments[s.route].Nodes {
			if n.Op == ir.Route {
				s.used = n.Route.Used
			}
		}
		f.routes[s.route] = len(layers)
		f.layers, layers = append(f.layers, s), append(layers, predict.Layer{Experts: len(s.expert), Used: s.used})
		f.had = append(f.had, make([]bool, max(0, len(s.expert)-len(f.had)))...)
	}
	f.Predictor = predict.New(layers)
	return f
}

// foreseesAny says whether a model foresees a route after any segment.
func foreseesAny(m backend.Model, segments int) bool {
	for s := range segments {
		if _, ok := m.Foresees(s); ok {
			return true
		}
	}
	return false
}

// chose has the predictor learn which experts the rows of the step chose in a layer, and forsakes guesses of others.
func (f *foresight) chose(s *shared, experts []int32) {
	had := f.had[:len(s.expert)]
	for e, g := range s.expert {
		h := &f.o.groups[g]
		had[e] = h.there && !h.guessed
		switch {
		case s.chosen[e] && h.guessed:
			h.guessed = false
			f.Right()
			f.o.traffic.right.Add(1)
		case !s.chosen[e] && h.slot >= 0 && !h.there && f.o.slots[h.slot].asked == guessed:
			f.o.say(h.slot, forsaken)
		}
	}
	f.Learn(s.layer, experts, had)
}

// guess asks for likely experts, while fewer than mostGuesses are on their way and slots can be spared.
func (f *foresight) guess() {
	for f.o.guesses < mostGuesses {
		l, e, ok := f.Next(f.has)
		if !ok {
			return
		}
		s := f.layers[l]
		at := f.spare(s)
		if at < 0 {
			return
		}
		f.o.traffic.guesses.Add(1)
		f.o.groups[s.expert[e]].guessed = true
		f.o.bring(s.expert[e], at, guessed)
	}
}

func (f *foresight) has(l, expert int) bool { return f.o.groups[f.layers[l].expert[expert]].slot >= 0 }

// spare returns a slot of a layer for a guess; -1: none can be spared. Guesses on their way leave as many of the
// layer's slots alone as a row chooses experts.
func (f *foresight) spare(s *shared) int {
	o := f.o
	o.among = o.among[:0]
	coming, free := 0, -1
	for _, i := range s.shelf {
		switch x := &o.slots[i]; {
		case x.group < 0:
			free = i
		case !o.groups[x.group].there:
			coming++
		case x.leases == 0 && !f.Keeps(s.layer, o.expert(x.group)):
			o.among = append(o.among, int32(o.expert(x.group)))
		}
	}
	switch {
	case coming >= min(inLayer, len(s.shelf)-s.used):
		return -1
	case free >= 0:
		return free
	}
	return o.leaves(s)
}
