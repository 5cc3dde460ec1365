package blocks

import (
	"errors"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// hauled makes a model some of whose weights come while it computes. The others are copied to it first.
func (p *Network) hauled(d backend.Device, run []int, c backend.Config) (backend.Model, error) {
	tables := make([][]byte, len(p.Bound.Weights))
	for r, read := range p.Haul.Tables() {
		if read {
			tables[r] = p.Haul.Table(ir.Ref(r))
		}
	}
	c.Slots, c.Weights = p.Haul.Slots(), backend.Uploaded{Tables: tables}
	m, err := d.Compile(p.Bound, c)
	if err != nil {
		return nil, err
	}
	used, _, _ := p.Only(run).Used()
	for r, stays := range p.Haul.Resident() {
		if !used[r] || !stays {
			continue
		}
		upload := func(data []byte) error { return m.Upload(ir.Ref(r), 0, data) }
		if data := p.Weights[r]; data != nil {
			err = upload(data)
		} else {
			err = p.From(ir.Ref(r), upload)
		}
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	p.Haul.Begin(m, d.Traits().Ended)
	return m, nil
}
