package actors

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place/foresee"
)

// foresee asks the model, which has just computed a segment, what the next route will choose: so experts can come while
// it goes on. The tape writes it down, too.
func (c *cursor) foresee() error {
	m, w, tape := c.step, c.guest.weights, c.guest.tape
	ahead, ok := c.guest.model.(backend.Foreseer)
	if !ok || w == nil && tape == nil || len(m.compute.Tokens) > foresee.MaxRows {
		return nil
	}
	route, ok := ahead.Foresees(c.segment)
	if !ok || tape == nil && !w.Foresees(route) {
		return nil
	}
	late := c.guest.spec.bound.Segments[c.segment].Kind == ir.SegExperts
	return ahead.Foresee(c.segment, m.compute, func(margins []int8) {
		tape.foreseen(route, late, margins)
		if w != nil && w.Foresees(route) {
			w.Foreseen(route, late, margins)
		}
	})
}
