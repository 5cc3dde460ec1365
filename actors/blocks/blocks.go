// Package blocks computes programs that are no text: towers that see, and parts that make pictures; and the rows that
// these take of a text (Stream).
//
// A program's rows of floats come from the caller, and its outputs go there. Run computes all rows as one step, in
// models that stay for the next one. Striped (striped.go) computes a picture part by part, as many lines at a time as
// memory is given for. One goroutine at a time uses a Network, and nothing else computes on its device meanwhile.
package blocks

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// leastRows is the least number of rows that models of Run are compiled for.
const leastRows = 256

// Network is a program with its weights, for any device.
type Network struct {
	*ir.Bound
	Weights [][]byte // by Ref, of the types and shapes that are bound
	Runs    [][]int  // of segments: those that are computed one after another by one model
	// Haul brings the weights of a network of one run, or of a stream, some of which have no room; nil: all are in
	// Weights. With it Weights has those alone that no file has, and From lends the others to who copies them.
	Haul *supply.Haul
	From func(r ir.Ref, use func(data []byte) error) error

	models       []backend.Model // by run; nil before the first step
	most, blocks int             // rows and blocks of caches that the models are compiled for
}

// Run computes a step, and returns the outputs. spans says which rows belong together in a segment, as pictures or
// lines; places may be nil.
func (p *Network) Run(d backend.Device, spans func(segment int) []ir.Grid, places []ir.Place,
	inputs map[string][]float32) (map[string][]float32, error) {
	rows, blocks := 0, 0
	for _, run := range p.Runs {
		rows, blocks = 0, max(blocks, blocksOf(spans(run[0])))
		for _, g := range spans(run[0]) {
			rows += g.Height * g.Width
		}
	}
	if err := p.compile(d, rows, blocks); err != nil {
		return nil, err
	}
	there := p.given(inputs)
	for i, m := range p.models {
		if err := p.pass(m, p.Runs[i], spans(p.Runs[i][0]), places, there); err != nil {
			return nil, err
		}
	}
	return p.left(there), nil
}

// given is the inputs by their values.
func (p *Network) given(inputs map[string][]float32) map[ir.Value][]float32 {
	there := map[ir.Value][]float32{}
	for _, in := range p.Inputs {
		there[in.Value] = inputs[in.Name]
	}
	return there
}

// left is the outputs by their names.
func (p *Network) left(there map[ir.Value][]float32) map[string][]float32 {
	out := map[string][]float32{}
	for _, o := range p.Outputs {
		out[o.Name] = there[o.Value]
	}
	return out
}

// pass computes the segments of one model as a step.
func (p *Network) pass(m backend.Model, run []int, spans []ir.Grid, places []ir.Place,
	there map[ir.Value][]float32, tokens ...int32) error {
	s := p.step(m, spans, places, tokens)
	err := p.enqueue(m, s, run, there)
	return errors.Join(err, finish(m, s))
}

// step is a model's step of some rows.
func (p *Network) step(m backend.Model, spans []ir.Grid, places []ir.Place, tokens []int32) *backend.Step {
	s := m.Steps()[0]
	s.Tokens, s.Wanted, s.Spans = tokens, nil, s.Spans[:0]
	row, block := 0, int32(0)
	for _, g := range spans {
		n := g.Height * g.Width
		span := backend.Span{Row: row, Rows: n, Grid: g}
		var blocks []int32
		for range backend.BlocksFor(n) {
			blocks, block = append(blocks, block), block+1
		}
		span.Tables = slices.Repeat([]backend.Table{{Blocks: blocks}}, len(p.Classes))
		if places != nil {
			span.Places = places[row : row+n]
		}
		s.Spans, row = append(s.Spans, span), row+n
	}
	return s
}

// finish ends a step, and waits for it.
func finish(m backend.Model, s *backend.Step) error {
	done := make(chan error, 1)
	m.Finish(s, func(err error) { done <- err })
	return <-done
}

// enqueue has segments computed: it takes values from those that are there, and adds what others read.
func (p *Network) enqueue(m backend.Model, s *backend.Step, run []int, there map[ir.Value][]float32) error {
	given := map[ir.Value]bool{}
	for _, v := range p.Only(run).Taken() {
		given[v] = true
	}
	for _, segment := range run {
		if err := p.segment(m, s, segment, given, there); err != nil {
			return err
		}
		for _, v := range p.Handed(segment) {
			if !p.leaves(v, run) {
				continue
			}
			there[v] = make([]float32, s.Rows()*p.Widths[v])
			if err := m.Out(v, s, there[v]); err != nil {
				return err
			}
		}
	}
	return nil
}

// segment has a segment computed, once the device has what it reads first of those that are given.
func (p *Network) segment(m backend.Model, s *backend.Step, segment int, given map[ir.Value]bool,
	there map[ir.Value][]float32) error {
	for _, v := range p.Only([]int{segment}).Taken() {
		if given[v] {
			if err := m.In(v, s, there[v]); err != nil {
				return err
			}
			given[v] = false
		}
	}
	if p.Haul != nil {
		return p.Haul.Run(segment, s)
	}
	return backend.Enqueue(m, segment, s)
}

// leaves says whether a value is an output, or is read by segments after those of a run.
func (p *Network) leaves(v ir.Value, run []int) bool {
	if slices.ContainsFunc(p.Outputs, func(o ir.Output) bool { return o.Value == v }) {
		return true
	}
	last := run[len(run)-1]
	return last+1 < len(p.Segments) && slices.Contains(p.Only(p.All()[last+1:]).Taken(), v)
}

// compile makes models for at least so many rows and blocks. A picture that is larger than all before has them made
// again.
func (p *Network) compile(d backend.Device, rows, blocks int) error {
	if rows <= p.most && blocks <= p.blocks {
		return nil
	}
	most := 1 << bits.Len(uint(max(rows, p.most, leastRows)-1))
	blocks = 1 << bits.Len(uint(max(blocks, p.blocks, backend.BlocksFor(most))-1))
	if err := p.free(); err != nil {
		return err
	}
	for _, run := range p.Runs {
		m, err := p.model(d, run, most, blocks, d.Traits().Memory == backend.HostMemory)
		if err != nil {
			return errors.Join(err, p.free())
		}
		p.models = append(p.models, m)
	}
	p.most, p.blocks = most, blocks
	return nil
}

// model makes the model of a run, with its weights: in place, or copied as the device likes them best.
func (p *Network) model(d backend.Device, run []int, rows, blocks int, inPlace bool) (backend.Model, error) {
	c := backend.Config{Layout: backend.Layout{Segments: run}, Limits: backend.Limits{KV: backend.KVF32, MaxRows: rows,
		Blocks: slices.Repeat([]int{blocks}, len(p.Classes))}}
	if len(run) == len(p.Segments) {
		c.Segments = nil
	}
	if p.Form() == ir.Encoder {
		c.MaxWanted = rows
	}
	if p.Haul != nil {
		return p.hauled(d, run, c)
	}
	if inPlace {
		c.Weights = backend.InPlace(p.Weights)
	}
	m, err := d.Compile(p.Bound, c)
	if err != nil || inPlace {
		return m, err
	}
	used, _, _ := p.Only(run).Used()
	for r, data := range p.Weights {
		if !used[r] {
			continue
		}
		if err := m.Upload(ir.Ref(r), 0, data); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

// Stream computes a text up to a segment, and returns the residual stream after it, a row for each token. Weights that
// no segment until there reads may be nil.
func (p *Network) Stream(d backend.Device, tokens []int32, last int) (rows []float32, err error) {
	run := p.All()[:last+1]
	m, err := p.model(d, run, len(tokens), backend.BlocksFor(len(tokens)), d.Traits().Memory == backend.HostMemory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.leave(m)) }()
	there := map[ir.Value][]float32{}
	if err := p.pass(m, run, []ir.Grid{{Height: 1, Width: len(tokens)}}, nil, there, tokens...); err != nil {
		return nil, err
	}
	return there[p.Segments[last].Stream()], nil
}

// Vectors computes a text by an encoder of one run, and returns the vectors of its tokens.
func (p *Network) Vectors(d backend.Device, tokens []int32) ([]float32, error) {
	spans := []ir.Grid{{Height: 1, Width: len(tokens)}}
	if err := p.compile(d, len(tokens), blocksOf(spans)); err != nil {
		return nil, err
	}
	m := p.models[0]
	s := p.step(m, spans, nil, tokens)
	for i := range tokens {
		s.Wanted = append(s.Wanted, int32(i))
	}
	err := p.enqueue(m, s, p.Runs[0], map[ir.Value][]float32{})
	if err = errors.Join(err, finish(m, s)); err != nil {
		return nil, err
	}
	return slices.Clone(s.Logits[:len(tokens)*p.OutputWidth()]), nil
}

// blocksOf is how many blocks of a cache spans take.
func blocksOf(spans []ir.Grid) (n int) {
	for _, g := range spans {
		n += backend.BlocksFor(g.Height * g.Width)
	}
	return n
}

// Close frees what the device has of the program. Without a Haul it may be used again.
func (p *Network) Close() error {
	err := p.free()
	if p.Haul != nil {
		err = errors.Join(err, p.Haul.Close())
	}
	return err
}

// free closes the models.
func (p *Network) free() error {
	var errs []error
	for _, m := range p.models {
		errs = append(errs, p.leave(m))
	}
	p.models, p.most, p.blocks = nil, 0, 0
	return errors.Join(errs...)
}

// leave closes a model, once nothing is written to its memory any more.
func (p *Network) leave(m backend.Model) error {
	if p.Haul != nil {
		p.Haul.End()
	}
	return m.Close()
}
