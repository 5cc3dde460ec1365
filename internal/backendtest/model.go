package backendtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
)

// Model is a bound program with its weights, as tests run it.
type Model struct{ *judge.Model }

// NewModel binds p to a file's tensors and copies the weights. view shows the bytes of tensor i.
func NewModel(p *ir.Program, tensors []ir.Tensor, view func(i int, use func([]byte) error) error) (*Model, error) {
	return made(judge.NewModel(p, tensors, view))
}

// made has a new model run as tests run it.
func made(m *judge.Model, err error) (*Model, error) { return &Model{m}, err }

// loaded is a model on a device, all weights uploaded.
type loaded struct {
	backend.Model
	m       *Model
	config  backend.Config
	through func(*backend.Step) error // how a step is run; nil: segment by segment
	heard   int                       // so many positions of texts an encoder read
}

// load compiles m for d and uploads its weights, unless they are in place; the test closes both.
func load(t testing.TB, d backend.Device, m *Model, c backend.Config) *loaded {
	t.Helper()
	model, err := compile(t, d, m, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	for r := range m.Weights[len(c.InPlace()):] {
		require.NoError(t, model.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	return &loaded{Model: model, m: m, config: c, heard: Heard(m.Program)}
}

// compile skips the test if the device reports that it does not support the program: which programs it must support is
// checked in its own tests.
func compile(t testing.TB, d backend.Device, m *Model, c backend.Config) (backend.Model, error) {
	t.Helper()
	model, err := d.Compile(m.Bound, c)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("%s: %v", d.Name(), err)
	}
	if err == nil && d.Traits().Memory == backend.OwnMemory {
		c.Counted = true
		counted, err := d.Compile(m.Bound, c)
		require.NoError(t, err)
		require.Equal(t, model.Memory(), counted.Memory(), "what was counted is what is taken")
		require.NoError(t, counted.Close())
	}
	return model, err
}

// Blocks returns n KV blocks for each cache class.
func Blocks(p *ir.Program, n int) []int { return slices.Repeat([]int{n}, len(p.Classes)) }

// Tables returns the same blocks for each cache class.
func Tables(p *ir.Program, blocks []int32) []backend.Table {
	return slices.Repeat([]backend.Table{{Blocks: blocks}}, len(p.Classes))
}

// Heard is how many positions of a text an encoder has read, if that is what the program wants: they end in a block, in
// some chunks.
func Heard(p *ir.Program) int {
	if p.Hears {
		return 7
	}
	return 0
}

// rows are consecutive tokens of one sequence, from position pos on, its cache in the blocks of table, in all classes.
type rows struct {
	tokens []int32
	pos    int
	table  []int32
}

// step runs the rows as one step and returns the logits of all of them, in order.
func (l *loaded) step(t rapid.TB, parts ...rows) []float32 {
	t.Helper()
	s, err := l.try(parts...)
	require.NoError(t, err)
	return s
}

func (l *loaded) try(parts ...rows) ([]float32, error) {
	s := l.Steps()[0]
	s.Tokens, s.Spans, s.Wanted = nil, nil, nil
	for _, p := range parts {
		tables := Tables(l.m.Program, p.table)
		s.Spans = append(s.Spans, backend.Span{Row: len(s.Tokens), Rows: len(p.tokens), Pos: p.pos, Tables: tables,
			Heard: l.heard})
		s.Tokens = append(s.Tokens, p.tokens...)
	}
	for i := range s.Tokens {
		s.Wanted = append(s.Wanted, int32(i))
	}
	if err := l.run(s); err != nil {
		return nil, err
	}
	return slices.Clone(s.Logits[:len(s.Tokens)*l.m.OutputWidth()]), nil
}

// run takes a step through the whole program.
func (l *loaded) run(s *backend.Step) (err error) {
	if l.through != nil {
		return l.through(s)
	}
	return l.whole(s)
}

// whole runs a step segment by segment.
func (l *loaded) whole(s *backend.Step) (err error) {
	for i := 0; i < len(l.m.Segments) && err == nil; i++ {
		err = backend.Enqueue(l, i, s)
	}
	return errors.Join(err, finish(l.Model, s))
}

// finish ends a step and waits for it.
func finish(m backend.Model, s *backend.Step) error {
	done := make(chan error, 1)
	m.Finish(s, func(err error) { done <- err })
	return <-done
}

// sequence runs tokens from position 0 in chunks of the given sizes, the last one repeated.
func (l *loaded) sequence(t rapid.TB, tokens, table []int32, chunks ...int) []float32 {
	t.Helper()
	var logits []float32
	for pos, i := 0, 0; pos < len(tokens); i++ {
		n := min(chunks[min(i, len(chunks)-1)], len(tokens)-pos)
		logits = append(logits, l.step(t, rows{tokens[pos : pos+n], pos, table})...)
		pos += n
	}
	return logits
}

// table numbers the blocks for n positions from first on.
func table(n, first int) []int32 {
	blocks := make([]int32, (n+backend.BlockSize-1)/backend.BlockSize)
	for i := range blocks {
		blocks[i] = int32(first + i)
	}
	return blocks
}
