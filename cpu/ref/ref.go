package ref

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// New returns the reference device.
func New() backend.Device { return device{} }

type device struct{}

func (device) Name() string { return "ref" }

// Traits: one step at a time, in the program's memory, on the one goroutine that calls.
func (device) Traits() backend.Traits {
	return backend.Traits{Flight: 1, Threads: 1, Memory: backend.HostMemory}
}

func (device) Close() error { return nil }

// Compile takes any program whose weight types have a decoder.
func (d device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	m := &model{p: p, config: c, values: make([][]float32, len(p.Widths)), weights: make([]weight, len(p.Weights)),
		steps: []*backend.Step{{Logits: make([]float32, c.MaxWanted*p.OutputWidth())}}}
	var faults []error
	weights, caches, states := p.Only(c.Segments).Used()
	for r := range p.Weights {
		if !weights[r] {
			continue
		}
		w, err := newWeight(&p.Weights[r], p.Types[r])
		if err != nil {
			faults = append(faults, err)
		}
		m.weights[r] = w
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	m.caches, m.Areas = make([]cache, len(p.KV)), make(backend.Areas, len(p.Classes))
	for i, kv := range p.KV {
		if caches[i] {
			m.caches[i] = newCache(kv, c.KV.Of(i, p.Classes[kv.Class]), c)
			for c := &m.caches[i]; c != nil; c = c.open {
				m.area(c.Class, c.k)
				m.area(c.Class, c.v)
			}
		}
	}
	m.states = make([]state, len(p.States))
	for i, l := range p.States {
		if states[i] {
			m.states[i] = state{l, make([]float32, c.Blocks[l.Class]*l.Values), make([]float32, l.Values)}
			m.area(l.Class, m.states[i].slots)
		}
	}
	return m, m.adopt(c.InPlace())
}

// area divides memory into equal parts for the blocks of a class.
func (m *model) area(class int, memory []float32) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(memory))), 4*len(memory))
	m.Areas[class] = append(m.Areas[class], backend.Area{Memory: bytes, Each: len(bytes) / m.config.Blocks[class]})
}

// adopt sets the weights in place.
func (m *model) adopt(weights [][]byte) error {
	for r, data := range weights {
		if m.weights[r].Weight == nil {
			continue
		}
		if err := m.Upload(ir.Ref(r), 0, data); err != nil {
			return err
		}
	}
	return nil
}

// model is a compiled program. values[v] is the matrix of Value v in the running step, row after row.
type model struct {
	backend.Whole
	backend.Blind
	backend.Areas
	p       *ir.Bound
	config  backend.Config
	weights []weight
	caches  []cache
	states  []state
	values  [][]float32
	steps   []*backend.Step
}

func (*model) RowGrain() int { return 1 }

func (m *model) Upload(r ir.Ref, row int, data []byte) error {
	if r < 0 || int(r) >= len(m.weights) {
		return fmt.Errorf("weight %d of %d", r, len(m.weights))
	}
	if m.weights[r].Weight == nil {
		return fmt.Errorf("weight %d is of no segment that is computed here", r)
	}
	return m.weights[r].upload(row, data)
}

func (m *model) Memory() backend.Memory {
	var mem backend.Memory
	for i := range m.weights {
		mem.Weights += int64(len(m.weights[i].data))
	}
	for i := range m.caches {
		for c := &m.caches[i]; c != nil; c = c.open {
			mem.KV += c.bytes()
		}
	}
	for i := range m.states {
		mem.KV += 4 * int64(len(m.states[i].slots))
	}
	for _, w := range m.p.Widths {
		mem.Scratch += 4 * int64(w) * int64(m.config.MaxRows)
	}
	return mem
}

func (m *model) Close() error {
	m.weights, m.caches, m.states, m.values = nil, nil, nil, nil
	return nil
}

func (m *model) Steps() []*backend.Step { return m.steps }

// Run executes one segment. A value that is not finite is an error: it says where the numbers went wrong.
func (m *model) Run(w backend.Work, s *backend.Step) error {
	segment := w.Segment
	if err := m.Takes(&w); err != nil {
		return err
	}
	if segment < 0 || segment >= len(m.p.Segments) || !m.config.Computes(segment) {
		return fmt.Errorf("segment %d of %d is not computed here", segment, len(m.p.Segments))
	}
	if err := s.Follows(&m.config.Layout, &w); err != nil {
		return err
	}
	if err := s.Check(m.p.Program, &m.config.Limits, 0); err != nil {
		return err
	}
	seg, f := &m.p.Segments[segment], m.frame(s)
	for i := range seg.Nodes {
		n := &seg.Nodes[i]
		if err := m.node(n, f); err != nil {
			return fmt.Errorf("%s, node %d, %s: %w", seg, i, n.Op, err)
		}
	}
	if seg.Kind.Ends() {
		copy(s.Logits, m.values[m.p.End()])
	}
	return nil
}

// Finish has nothing to wait for.
func (m *model) Finish(s *backend.Step, done func(error)) {
	s.Restart()
	done(nil)
}

// In keeps a copy of rows as the value.
func (m *model) In(v ir.Value, _ *backend.Step, rows []float32) error {
	m.values[v] = append([]float32(nil), rows...)
	return nil
}

// Out copies the value to rows.
func (m *model) Out(v ir.Value, _ *backend.Step, rows []float32) error {
	if n := copy(rows, m.values[v]); n != len(rows) {
		return fmt.Errorf("value %d has %d numbers, want %d", v, n, len(rows))
	}
	return nil
}

func (m *model) node(n *ir.Node, f *ir.Frame) error {
	for _, r := range n.Weights() {
		if m.weights[r].missing() > 0 {
			return fmt.Errorf("%s: %d rows were not uploaded", m.p.Weights[r].Name, m.weights[r].missing())
		}
	}
	width := m.p.Widths[n.Out]
	f.Values[n.Out] = make([]float32, f.Height(n)*width)
	f.Run(n)
	for i, y := range f.Values[n.Out] {
		if y-y != 0 { // NaN or infinite
			return fmt.Errorf("row %d, feature %d is %v", i/width, i%width, y)
		}
	}
	return nil
}

// newWeight makes room for a weight in its file's format.
func newWeight(w *ir.Weight, t quant.Type) (weight, error) {
	if !quant.HasCodec(t) && (t != quant.I32 || w.Use != ir.Table) {
		return weight{}, fmt.Errorf("%s: type %s cannot be decoded", w.Name, t)
	}
	row, err := t.RowBytes(w.Cols)
	if err != nil {
		return weight{}, fmt.Errorf("%s: %w", w.Name, err)
	}
	return weight{Weight: w, typ: t, rowBytes: row, data: make([]byte, row*w.Rows), have: make([]bool, w.Rows)}, nil
}
