package supply

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
)

// Haul is the weights of a network, some of which come whenever a segment needs them. The file stays open meanwhile.
type Haul struct {
	tiers.Source
	supply   *Supply
	graph    *run.Graph
	ways     *tiers.Ways
	progress tiers.Progress

	// Of the compiled model; nil before Begin and after End.
	model     backend.Model
	ended     func() error
	cargo     *tiers.Cargo
	residency *tiers.Residency
}

// Haul has weights of a network brought, of which the plan says what streams. It closes the file.
func (s *Supply) Haul(source tiers.Source) *Haul {
	h := &Haul{Source: source, supply: s, graph: run.NewGraph(s.system)}
	h.ways = s.wiring.Wire(h.graph, s.at, len(source.Plan.Ring.Slots))
	s.graph.Join(h.graph)
	return h
}

// Close ends the haul, after End, and closes the file.
func (h *Haul) Close() error {
	h.supply.graph.Part(h.graph)
	if h.cargo != nil {
		return errors.Join(errors.New("weights still come to a model: its haul was not ended"), h.File.Close())
	}
	return h.File.Close()
}

// Slots is how the device lays the network's groups out.
func (h *Haul) Slots() [][]int { return h.Plan.Layout.Slots }

// Begin has weights come to a model, once all are there that stay. ended, which may be nil, says why nobody wants them
// any more.
func (h *Haul) Begin(m backend.Model, ended func() error) {
	if h.model, h.ended = m, ended; h.ended == nil {
		h.ended = func() error { return nil }
	}
	h.load()
}

// load begins with no group there.
func (h *Haul) load() {
	h.cargo = tiers.NewCargo(h.Source, h.model, &h.progress)
	h.residency = tiers.NewResidency(h.cargo, h.ways.Want.Send, h.ways.Returned.Send)
	h.residency.CountTo(&h.supply.traffic)
	h.supply.hauls[h.cargo] = h
	h.residency.Fill()
}

// End lets nothing more come to the model, and waits until nothing writes to its memory: it may be closed then.
func (h *Haul) End() {
	if h.cargo == nil {
		return
	}
	h.unload()
	h.ways.Renew.Send(&tiers.Renew{}) // the reader lets go of the file
	h.model, h.residency = nil, nil
}

func (h *Haul) unload() {
	h.cargo.Close()
	delete(h.supply.hauls, h.cargo)
	h.cargo = nil
}

// Run computes a segment once its weights are there.
func (h *Haul) Run(segment int, step *backend.Step) error {
	s, at := h.supply, trace.OfSegment(0, segment, h.Bound.Segments[segment].Layer)
	if err := s.listen(); err != nil {
		return err
	}
	if !h.residency.Streams(segment) {
		defer s.computed(at)()
		return backend.Enqueue(h.model, segment, step)
	}
	for {
		groups := h.residency.Dense(segment)
		h.residency.Demand(segment, groups)
		loan := h.residency.Lend(groups)
		if len(loan.Groups) < len(groups) {
			h.residency.Settle(loan)
			if err := h.wait(groups, at); err != nil {
				return fmt.Errorf("%s: %w", &h.Bound.Segments[segment], err)
			}
			continue
		}
		done := s.computed(at)
		err := h.model.Run(loan.Part(segment, true), step)
		done()
		if loan.Returned() {
			h.residency.Settle(loan)
		}
		return err
	}
}

// computed begins the span of a segment, which the function ends that it returns.
func (s *Supply) computed(of trace.Of) func() {
	began := trace.Instant()
	return func() { s.track.Record(trace.Block, of, began, began, trace.Instant()) }
}

// listen takes in what has come meanwhile.
func (s *Supply) listen() error {
	for {
		select {
		case n := <-s.news:
			s.hear(n)
		case <-s.failed:
			return s.err
		default:
			return nil
		}
	}
}

// hear takes in what the dock has heard. What belongs to a model that was closed is of no use.
func (s *Supply) hear(n news) {
	switch {
	case n.landed != nil:
		if h := s.hauls[n.landed.Of()]; h != nil {
			h.residency.Landed(n.landed)
		}
	case n.returned != nil:
		for _, h := range s.hauls {
			if h.residency == n.returned.Of {
				h.residency.Settle(n.returned.Loan)
			}
		}
	default:
		var all []*Haul
		for _, h := range s.hauls {
			all = append(all, h)
		}
		for _, h := range all { // none has lent anything between segments
			h.unload()
			h.load()
		}
	}
}

// wait takes in what comes next, after which groups of a segment may be there, or have to be asked for again.
func (h *Haul) wait(groups []int, of trace.Of) error {
	s, began := h.supply, now()
	s.idle.Begin(trace.Instant(), trace.Reader, of)
	defer func() { s.idle.End(trace.Instant()) }()
	for {
		look := after(often)
		select {
		case n := <-s.news:
			look.Stop()
			s.hear(n)
			if m := n.landed; m != nil && m.Of() == h.cargo && slices.Contains(groups, m.Group()) {
				if m.Err != nil {
					return m.Err
				}
				m.Way.Explain(s.idle, trace.Instant())
			}
			return nil // another group may have to make room
		case <-s.failed:
			look.Stop()
			return s.err
		case <-look.C:
		}
		if err := h.ended(); err != nil {
			return err
		}
		if waited := min(now().Sub(began), s.wiring.Debt.Lasts()); waited >= late {
			return h.residency.Late(groups, waited)
		}
	}
}

// Table is a weight's bytes in the file.
func (h *Haul) Table(r ir.Ref) []byte { return h.File.Bytes(&h.File.Tensors[h.Bound.Tensors[r]]) }

// Resident says by Ref which weights stay on the device.
func (h *Haul) Resident() []bool { return h.Plan.Resident(len(h.Bound.Weights)) }

// Tables says by Ref which weights are read from the file, row by row.
func (h *Haul) Tables() []bool {
	all := make([]bool, len(h.Bound.Weights))
	for i := range h.Plan.Homes {
		x := &h.Plan.Homes[i]
		for _, r := range x.Group.Weights {
			all[r] = all[r] || x.Group.Use == ir.Table && x.Slot < 0
		}
	}
	return all
}
