// Package sight computes what models see: it loads a tower on a device, and makes rows of text of pictures.
//
// What a tower is stands in stages/model/vision. One goroutine at a time uses an Eye, and nothing else computes on its
// device meanwhile.
package sight

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// MostPatches is the most patches of a picture that are computed.
const MostPatches = 1 << 14

// leastRows is the least number of rows that a tower is compiled for.
const leastRows = 256

// Seen is a picture as a text has it.
type Seen struct {
	Grid ir.Grid     // of the rows
	Rows []float32   // [Grid.Height·Grid.Width][width]
	Deep [][]float32 // what is added to the same rows after the first layers, one after another
}

// Bytes is the memory that it takes.
func (s *Seen) Bytes() int { return 4 * len(s.Rows) * (1 + len(s.Deep)) }

// Eye is a tower on a device.
type Eye struct {
	Tower *vision.Tower

	device  backend.Device
	patches compiled
	rows    compiled
	table   []float32 // of learned positions, if others are interpolated
}

// compiled is one of a tower's programs, with its weights.
type compiled struct {
	*ir.Bound
	weights [][]byte // by Ref
	models  []backend.Model
	runs    [][]int // of segments: those of one model

	most, blocks int // rows and blocks of caches that the models are compiled for
}

// Open reads the tower of an mmproj file. The device is the caller's, and is closed after the Eye; nil: Use says which.
func Open(d backend.Device, f *gguf.File) (*Eye, error) {
	list := make([]ir.Tensor, len(f.Tensors))
	for i, x := range f.Tensors {
		list[i] = ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape}
	}
	tensors := vision.Tensors(list)
	tower, err := vision.Record(&f.Meta, tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	e := &Eye{Tower: tower, device: d}
	if e.patches.Bound, e.rows.Bound, err = tower.Bind(tensors); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	for _, p := range []*compiled{&e.patches, &e.rows} {
		if err := p.read(f, tensors); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	e.patches.runs, e.rows.runs = alike(tower.Windowed), [][]int{e.rows.All()}
	if _, interpolates := tower.Patches.Input(vision.Positions); interpolates {
		i := slices.IndexFunc(f.Tensors, func(t gguf.Tensor) bool { return t.Name == vision.PositionTable })
		e.table, err = values(f, &f.Tensors[i])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return e, nil
}

// Use sets the device, before the first picture.
func (e *Eye) Use(d backend.Device) { e.device = d }

// alike divides segments where windows begin or end.
func alike(windowed []bool) (runs [][]int) {
	for s, w := range windowed {
		if s == 0 || w != windowed[s-1] {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], s)
	}
	return runs
}

// values decodes a tensor.
func values(f *gguf.File, t *gguf.Tensor) (all []float32, err error) {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	all = make([]float32, n)
	err = f.View(t, func(data []byte) error { return quant.Dequantize(t.Type, all, data) })
	return all, err
}

// read copies the weights, and turns those that the file has the other way round.
func (p *compiled) read(f *gguf.File, tensors []vision.Tensor) error {
	p.weights = make([][]byte, len(p.Weights))
	for r, i := range p.Tensors {
		from := &f.Tensors[tensors[i].From]
		err := f.View(from, func(data []byte) error {
			p.weights[r] = slices.Clone(data)
			return nil
		})
		if err != nil {
			return err
		}
		if tensors[i].Turn {
			if p.weights[r], err = turned(from, p.weights[r]); err != nil {
				return err
			}
		}
	}
	return nil
}

// turned makes rows of a matrix's columns.
func turned(t *gguf.Tensor, data []byte) ([]byte, error) {
	if t.Type.Block() != 1 {
		return nil, fmt.Errorf("tensor %s is of type %s, want F32, F16 or BF16", t.Name, t.Type)
	}
	cols, rows := t.Shape[0], t.Shape[1]
	each, out := len(data)/(rows*cols), make([]byte, 0, len(data))
	for c := range cols {
		for r := range rows {
			out = append(out, data[(r*cols+c)*each:][:each]...)
		}
	}
	return out, nil
}

// Look computes a picture.
func (e *Eye) Look(p *vision.Picture) (*Seen, error) {
	l, err := e.Tower.Layout(p.Height, p.Width)
	if err != nil {
		return nil, err
	}
	if n := len(l.Order); n > MostPatches {
		return nil, fmt.Errorf("a picture of %d patches, want at most %d", n, MostPatches)
	}
	whole := []int{len(l.Order)}
	spans := func(s int) []int {
		if e.Tower.Windowed[s] {
			return l.Windows
		}
		return whole
	}
	seen, err := e.patches.run(e.device, spans, l.Places, map[string][]float32{vision.Patches: e.Tower.Cut(l, p),
		vision.First: e.Tower.First(l), vision.Positions: e.Tower.Interpolated(l, e.table)})
	if err != nil {
		return nil, err
	}
	joined, width := map[string][]float32{}, e.Tower.Patches.Widths[e.Tower.Patches.Outputs[0].Value]
	for name, rows := range seen {
		joined[name] = e.Tower.Join(l, rows, width)
	}
	n := l.Text.Height * l.Text.Width
	made, err := e.rows.run(e.device, func(int) []int { return []int{n} }, nil, joined)
	if err != nil {
		return nil, err
	}
	of := &Seen{Grid: l.Text, Rows: made[vision.Rows]}
	for i := range e.Tower.Deeps {
		of.Deep = append(of.Deep, made[vision.Deep+strconv.Itoa(i)])
	}
	return of, nil
}

// run computes a step of so many rows, and returns the outputs. spans says how many rows see each other in a segment.
func (p *compiled) run(d backend.Device, spans func(int) []int, places []ir.Place, inputs map[string][]float32) (
	map[string][]float32, error) {
	rows, blocks := 0, 0
	for _, run := range p.runs {
		rows, blocks = 0, max(blocks, blocksOf(spans(run[0])))
		for _, n := range spans(run[0]) {
			rows += n
		}
	}
	if err := p.compile(d, rows, blocks); err != nil {
		return nil, err
	}
	there := map[ir.Value][]float32{}
	for _, in := range p.Inputs {
		there[in.Value] = inputs[in.Name]
	}
	for i, m := range p.models {
		if err := p.pass(m, p.runs[i], spans(p.runs[i][0]), places, there); err != nil {
			return nil, err
		}
	}
	out := map[string][]float32{}
	for _, o := range p.Outputs {
		out[o.Name] = there[o.Value]
	}
	return out, nil
}

// pass computes the segments of one model as a step.
func (p *compiled) pass(m backend.Model, run, spans []int, places []ir.Place, there map[ir.Value][]float32) error {
	s := m.Steps()[0]
	s.Tokens, s.Wanted, s.Spans = nil, nil, s.Spans[:0]
	row, block := 0, int32(0)
	for _, n := range spans {
		span := backend.Span{Row: row, Rows: n, Grid: ir.Grid{Height: 1, Width: n}}
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
	err := p.enqueue(m, s, run, there)
	done := make(chan error, 1)
	m.Finish(s, func(err error) { done <- err })
	return errors.Join(err, <-done)
}

// enqueue has segments computed: it takes values from those that are there, and adds what others read.
func (p *compiled) enqueue(m backend.Model, s *backend.Step, run []int, there map[ir.Value][]float32) error {
	given := map[ir.Value]bool{}
	for _, v := range p.Only(run).Taken() {
		given[v] = true
	}
	for _, segment := range run {
		for _, v := range p.Only([]int{segment}).Taken() {
			if given[v] {
				if err := m.In(v, s, there[v]); err != nil {
					return err
				}
				given[v] = false
			}
		}
		if err := backend.Enqueue(m, segment, s); err != nil {
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

// leaves says whether a value is an output, or is read by segments after those of a run.
func (p *compiled) leaves(v ir.Value, run []int) bool {
	if slices.ContainsFunc(p.Outputs, func(o ir.Output) bool { return o.Value == v }) {
		return true
	}
	last := run[len(run)-1]
	return last+1 < len(p.Segments) && slices.Contains(p.Only(p.All()[last+1:]).Taken(), v)
}

// compile makes models for at least so many rows and blocks. A picture that is larger than all before has them made
// again.
func (p *compiled) compile(d backend.Device, rows, blocks int) error {
	if rows <= p.most && blocks <= p.blocks {
		return nil
	}
	most := 1 << bits.Len(uint(max(rows, p.most, leastRows)-1))
	blocks = 1 << bits.Len(uint(max(blocks, p.blocks, backend.BlocksFor(most))-1))
	if err := p.close(); err != nil {
		return err
	}
	host := d.Traits().Memory == backend.HostMemory
	for _, run := range p.runs {
		c := backend.Config{Layout: backend.Layout{Segments: run}, Limits: backend.Limits{KV: backend.KVF32, MaxRows: most,
			Blocks: slices.Repeat([]int{blocks}, len(p.Classes))}}
		if len(run) == len(p.Segments) {
			c.Segments = nil
		}
		if host {
			c.Weights = backend.InPlace(p.weights)
		}
		m, err := d.Compile(p.Bound, c)
		if err != nil {
			return errors.Join(err, p.close())
		}
		p.models = append(p.models, m)
		if host {
			continue
		}
		used, _, _ := p.Only(run).Used()
		for r, data := range p.weights {
			if !used[r] {
				continue
			}
			if err := m.Upload(ir.Ref(r), 0, data); err != nil {
				return errors.Join(err, p.close())
			}
		}
	}
	p.most, p.blocks = most, blocks
	return nil
}

// blocksOf is how many blocks spans of so many rows take.
func blocksOf(spans []int) (n int) {
	for _, rows := range spans {
		n += backend.BlocksFor(rows)
	}
	return n
}

func (p *compiled) close() error {
	var errs []error
	for _, m := range p.models {
		errs = append(errs, m.Close())
	}
	p.models, p.most, p.blocks = nil, 0, 0
	return errors.Join(errs...)
}

// Close frees what the device has of the tower.
func (e *Eye) Close() error { return errors.Join(e.patches.close(), e.rows.close()) }
