package judge

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Model is a bound program with its weights as a file stores them.
type Model struct {
	*ir.Bound
	Weights [][]byte // by Ref
}

// NewModel binds p to a file's tensors and copies the weights. view shows the bytes of tensor i.
func NewModel(p *ir.Program, tensors []ir.Tensor, view func(i int, use func([]byte) error) error) (*Model, error) {
	bound, err := ir.Bind(p, tensors)
	if err != nil {
		return nil, err
	}
	m := &Model{Bound: bound, Weights: make([][]byte, len(p.Weights))}
	for r, i := range bound.Tensors {
		err := view(i, func(data []byte) error {
			m.Weights[r] = append([]byte(nil), data...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// RowBytes is the size of one row of a weight.
func (m *Model) RowBytes(r ir.Ref) int { return len(m.Weights[r]) / m.Program.Weights[r].Rows }

// Logits runs tokens of one sequence on a device, in steps of the given sizes, of which the last one repeats, and
// returns the logits of all of them. The model is compiled for that, and its weights are uploaded.
func (m *Model) Logits(d backend.Device, kv backend.KV, tokens []int32, steps ...int) (logits []float32, err error) {
	blocks := (len(tokens) + backend.BlockSize - 1) / backend.BlockSize
	c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: slices.Repeat([]int{blocks}, len(m.Classes)),
		MaxRows: len(tokens), MaxWanted: len(tokens), Flight: d.Traits().Flight}}
	x, err := d.Compile(m.Bound, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	for r := range m.Weights {
		if err := x.Upload(ir.Ref(r), 0, m.Weights[r]); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Program.Weights[r].Name, err)
		}
	}
	var table backend.Table
	for i := range blocks {
		table.Blocks = append(table.Blocks, int32(i))
	}
	for pos, i := 0, 0; pos < len(tokens); i++ {
		n := min(steps[min(i, len(steps)-1)], len(tokens)-pos)
		s := x.Steps()[0]
		s.Tokens, s.Wanted = tokens[pos:pos+n], s.Wanted[:0]
		s.Spans = []backend.Span{{Rows: n, Pos: pos, Tables: slices.Repeat([]backend.Table{table}, len(m.Classes))}}
		for r := range n {
			s.Wanted = append(s.Wanted, int32(r))
		}
		if err := m.step(x, s); err != nil {
			return nil, err
		}
		logits = append(logits, s.Logits[:n*m.OutputWidth()]...)
		pos += n
	}
	return logits, nil
}

// step takes a step through the whole program, and waits for its end.
func (m *Model) step(x backend.Model, s *backend.Step) (err error) {
	for i := 0; i < len(m.Segments) && err == nil; i++ {
		err = backend.Enqueue(x, i, s)
	}
	done := make(chan error, 1)
	x.Finish(s, func(err error) { done <- err })
	return errors.Join(err, <-done)
}
