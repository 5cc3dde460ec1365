package blocks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Course is a step that is computed segment by segment: in between, the caller computes something else of what came
// out, which the next segment takes.
type Course struct {
	network *Network
	model   backend.Model
	step    *backend.Step
	given   map[ir.Value]bool // inputs that the device does not have yet
	next    int
	err     error
}

// Begin starts a step of a network of one run, of rows that see each other. It ends with End.
func (p *Network) Begin(d backend.Device, rows int, places []ir.Place) (*Course, error) {
	if len(p.Runs) != 1 {
		return nil, fmt.Errorf("a network of %d runs, want one", len(p.Runs))
	}
	spans := []ir.Grid{{Height: 1, Width: rows}}
	if err := p.compile(d, rows, blocksOf(spans)); err != nil {
		return nil, err
	}
	c := &Course{network: p, model: p.models[0], given: map[ir.Value]bool{}}
	c.step = p.step(c.model, spans, places, nil)
	for _, v := range p.Only(p.Runs[0]).Taken() {
		c.given[v] = true
	}
	return c, nil
}

// Next computes the next segment, and returns the outputs that it writes. inputs are those that it reads first.
func (c *Course) Next(inputs map[string][]float32) (map[string][]float32, error) {
	p, segment := c.network, c.next
	if c.err != nil {
		return nil, c.err
	}
	c.next++
	if c.err = p.segment(c.model, c.step, segment, c.given, p.given(inputs)); c.err != nil {
		return nil, c.err
	}
	out := map[string][]float32{}
	for _, o := range p.Outputs {
		if !slices.Contains(p.Handed(segment), o.Value) {
			continue
		}
		out[o.Name] = make([]float32, c.step.Rows()*p.Widths[o.Value])
		if c.err = c.model.Out(o.Value, c.step, out[o.Name]); c.err != nil {
			return nil, c.err
		}
	}
	return out, nil
}

// End ends the step, whether or not all segments were computed.
func (c *Course) End() error { return errors.Join(c.err, finish(c.model, c.step)) }

// Set changes a weight of float32 numbers, before the next step.
func (p *Network) Set(name string, values []float32) error {
	for r := range p.Bound.Weights {
		if w := &p.Bound.Weights[r]; w.Name != name || p.Types[r] != quant.F32 || len(values) != w.Rows*w.Cols {
			continue
		}
		data := make([]byte, 0, 4*len(values))
		for _, x := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		p.Weights[r] = data
		for i, m := range p.models {
			if used, _, _ := p.Only(p.Runs[i]).Used(); !used[r] {
				continue
			}
			if err := m.Upload(ir.Ref(r), 0, data); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("no weight %.80q of %d numbers", name, len(values))
}
