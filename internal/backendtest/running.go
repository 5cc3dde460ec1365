package backendtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Running is a model on a device, with memory for a sequence of three blocks of the cache.
type Running struct {
	backend.Model
	T  testing.TB
	Of *Model
}

// Run compiles a model for steps of at most so many rows, and uploads its weights. The test closes it.
func Run(t testing.TB, d backend.Device, m *Model, rows int) *Running {
	t.Helper()
	x := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: Blocks(m.Program, 3),
		MaxRows: rows, MaxWanted: rows, Flight: d.Traits().Flight}})
	return &Running{x.Model, t, m}
}

// Begin enqueues tokens of the sequence, from a position on, in a step of the ring. All rows are wanted; draw has the
// device draw a token for each. The channel gets the error with which the step ends.
func (x *Running) Begin(step int, tokens []int32, pos int, draw bool) (*backend.Step, chan error) {
	x.T.Helper()
	s := x.Steps()[step%len(x.Steps())]
	s.Tokens, s.Wanted, s.Draws = tokens, s.Wanted[:0], s.Draws[:0]
	s.Spans = []backend.Span{{Rows: len(tokens), Pos: pos, Tables: Tables(x.Of.Program, []int32{2, 0, 1}),
		Heard: Heard(x.Of.Program)}}
	for r := range tokens {
		s.Wanted = append(s.Wanted, int32(r))
		if draw {
			s.Draws = append(s.Draws, backend.Draw{TopP: 1})
		}
	}
	for i := range x.Of.Segments {
		require.NoError(x.T, backend.Enqueue(x, i, s))
	}
	done := make(chan error, 1)
	x.Finish(s, func(err error) { done <- err })
	return s, done
}

// Logits returns the logits of all tokens, computed in chunks of some sizes, of which the last one repeats.
func (x *Running) Logits(tokens []int32, chunks ...int) (all []float32) {
	x.T.Helper()
	for pos, i := 0, 0; pos < len(tokens); i++ {
		n := min(chunks[min(i, len(chunks)-1)], len(tokens)-pos)
		s, done := x.Begin(i, tokens[pos:pos+n], pos, false)
		require.NoError(x.T, <-done)
		all = append(all, s.Logits[:n*x.Of.OutputWidth()]...)
		pos += n
	}
	return all
}

// Every is a device that must run every program: where it may refuse one as unsupported, the test fails.
type Every struct{ backend.Device }

// Compile implements backend.Device.
func (d Every) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	if errors.Is(err, errors.ErrUnsupported) {
		err = errors.New(err.Error())
	}
	return m, err
}

// Answer returns the logits of the rows of a text that stand behind what an encoder has read of it: rows, in place of
// those of the embedding.
func Answer(t testing.TB, d backend.Device, m *Model, text []int32, rows []float32) []float32 {
	t.Helper()
	n, heard := len(text), len(rows)/m.Widths[m.Segments[0].Stream()]
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 3), MaxRows: n,
		MaxWanted: n}})
	s := l.Steps()[0]
	s.Tokens, s.Wanted = text, nil
	s.Spans = []backend.Span{{Rows: n, Tables: Tables(m.Program, table(n, 0)), Heard: heard}}
	for i := heard; i < n; i++ {
		s.Wanted = append(s.Wanted, int32(i))
	}
	stream := m.Segments[0].Stream()
	for i := range m.Segments {
		require.NoError(t, backend.Enqueue(l, i, s))
		if i == 0 {
			all := make([]float32, n*m.Widths[stream])
			require.NoError(t, l.Out(stream, s, all))
			copy(all, rows)
			require.NoError(t, l.In(stream, s, all))
		}
	}
	require.NoError(t, finish(l.Model, s))
	return slices.Clone(s.Logits[:(n-heard)*m.OutputWidth()])
}
