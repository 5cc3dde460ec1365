package cpu

import (
	"errors"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// compile plans every segment, allocates memory and binds the phases to it.
func compile(d *device, p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	m := &model{program: p.Program, parts: backend.NewParts(p, c.Segments)}
	m.device, m.config = d, c
	m.pos, m.span = make([]int, c.MaxRows), make([]int, c.MaxRows)
	if err := m.compile(p.Only(c.Segments)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *model) compile(p *ir.Bound) error {
	if err := checkPlain(p.Program); err != nil {
		return err
	}
	if err := windowTypes(p); err != nil {
		return err
	}
	if err := m.layWeights(p); err != nil {
		return err
	}
	if err := m.layRooms(p); err != nil {
		return err
	}
	if err := m.layCaches(p); err != nil {
		return err
	}
	rules := rulesOf(p, m.config.Inputs != nil, m.config.Slots != nil)
	phases := live.Order(p.Program, rules)
	layout := newLayout(p, live.Lifetimes(p.Program, rules, phases), m.config, m.device.set.Tiled())
	if err := m.layScratch(p, layout.size); err != nil {
		return err
	}
	if err := m.layStates(p); err != nil {
		return err
	}
	if err := m.layStep(); err != nil {
		return err
	}
	if err := m.layStrips(); err != nil {
		return err
	}
	m.bind(p, layout, phases)
	return nil
}
