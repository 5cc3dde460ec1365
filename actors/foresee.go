package actors

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place/foresee"
)

// foresee asks the device, which has just computed a segment, what the next route will choose: so experts can come
// while it goes on. The tape writes it down, too.
func (d *device) foresee() error {
	at := &d.at
	m := at.step
	w, tape := m.guest.weights, m.guest.spec.tape
	ahead, ok := m.guest.model.(backend.Foreseer)
	if !ok || w == nil && tape == nil || len(m.compute.Tokens) > foresee.MaxRows {
		return nil
	}
	route, ok := ahead.Foresees(at.segment)
	if !ok || tape == nil && !w.Foresees(route) {
		return nil
	}
	late := m.guest.spec.bound.Segments[at.segment].Kind == ir.SegExperts
	return ahead.Foresee(at.segment, m.compute, func(margins []int8) {
		tape.foreseen(route, late, margins)
		if w != nil && w.Foresees(route) {
			w.Foreseen(route, late, margins)
		}
	})
}
