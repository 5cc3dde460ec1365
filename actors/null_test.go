package actors

import (
	"context"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// nullDevice computes nothing: what a step costs on it is what the actors cost. It may read memory instead, as a model
// does, which drives everything else out of the caches.
type nullDevice struct{ weights []uint64 }

func (nullDevice) Name() string { return "null" }
func (nullDevice) Traits() backend.Traits {
	return backend.Traits{Flight: 1, Memory: backend.HostMemory}
}
func (nullDevice) Close() error { return nil }
func (d nullDevice) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	return &nullModel{vocab: p.Vocab, head: len(p.Segments) - 1, weights: d.weights,
		ring: []*backend.Step{{Logits: make([]float32, c.MaxWanted*p.Vocab)}}}, nil
}

type nullModel struct {
	backend.Areas // none: it keeps nothing
	backend.Blind
	vocab, head int
	weights     []uint64
	sum         uint64
	ring        []*backend.Step
}

func (*nullModel) Slot(int) []byte                              { return nil }
func (*nullModel) Place(int, int, [][]byte) error               { return nil }
func (m *nullModel) Steps() []*backend.Step                     { return m.ring }
func (*nullModel) Finish(_ *backend.Step, done func(error))     { done(nil) }
func (*nullModel) In(ir.Value, *backend.Step, []float32) error  { return nil }
func (*nullModel) Out(ir.Value, *backend.Step, []float32) error { return nil }

func (*nullModel) Upload(ir.Ref, int, []byte) error { return nil }
func (*nullModel) RowGrain() int                    { return 16 }
func (*nullModel) Memory() backend.Memory           { return backend.Memory{} }
func (*nullModel) Close() error                     { return nil }

// Run makes the token after the row's own the likeliest. A part of a segment is nothing before the last.
func (m *nullModel) Run(w backend.Work, s *backend.Step) error {
	w.Release()
	segment := w.Segment
	if !w.Ends() {
		return nil
	}
	for i := 0; segment == 0 && i < len(m.weights); i += 8 { // one of each cache line
		m.sum += m.weights[i]
	}
	if segment == m.head {
		for i, row := range s.Wanted {
			clear(s.Logits[i*m.vocab:][:m.vocab])
			s.Logits[i*m.vocab+(int(s.Tokens[row])+1)%m.vocab] = 1
		}
	}
	return nil
}

func startNull(tb testing.TB, edit func(*Config)) *Engine {
	f, err := gguf.Open(fixturePath(tb, fixture))
	require.NoError(tb, err)
	cfg := Config{Model: Model{File: f, Context: 1 << 20, Blocks: 1 << 15}, Device: nullDevice{}, Log: zerolog.Nop()}
	if edit != nil {
		edit(&cfg)
	}
	e, err := Start(context.Background(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, e.Close(context.Background())) })
	return e
}

// TestReading: who waits for an answer is told how far its prompt is read, and how much of it was found in the cache.
// It stays so during the answer.
func TestReading(t *testing.T) {
	e := startNull(t, nil)
	prompt := make([]int32, 200)
	for i := range prompt {
		prompt[i] = int32(i%5 + 5)
	}
	for _, cached := range []int{0, 192} {
		s := begin(t, e, plain(prompt, 8))
		var ev Event
		for range 3 {
			require.NoError(t, s.Next(t.Context(), &ev))
			require.Equal(t, Reading{Done: 200, Cached: cached, Total: 200}, s.Reading())
		}
		for s.Next(t.Context(), &ev) == nil {
			require.Equal(t, 200, s.Reading().Done)
		}
	}
}

// BenchmarkStep is the actors' cost of one token of one sequence: in cold caches, after steps of about 1 ms, and warm.
func BenchmarkStep(b *testing.B) {
	b.Run("cold", func(b *testing.B) { benchmarkStep(b, make([]uint64, 12<<20/8)) })
	b.Run("warm", func(b *testing.B) { benchmarkStep(b, nil) })
}

func benchmarkStep(b *testing.B, weights []uint64) {
	for i := range weights {
		weights[i] = uint64(i)
	}
	e := startNull(b, func(c *Config) { c.Device = nullDevice{weights} })
	s := begin(b, e, plain([]int32{5, 6, 7}, 1<<19))
	defer s.Close()
	var ev Event
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Next(context.Background(), &ev))
	}
	steps := e.Steps()
	b.ReportMetric(float64(steps.Wall-steps.Compute-steps.Sample)/float64(steps.Count), "actors-ns/step")
	b.ReportMetric(float64(steps.Sample)/float64(steps.Count), "sample-ns/step")
}

// BenchmarkStep32 is the same with 32 sequences in each step, by token.
func BenchmarkStep32(b *testing.B) {
	e := startNull(b, nil)
	streams := make([]*Stream, 32)
	for i := range streams {
		streams[i] = begin(b, e, plain([]int32{5, 6, int32(i)}, 1<<19))
		defer streams[i].Close()
	}
	var ev Event
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		require.NoError(b, streams[i%32].Next(context.Background(), &ev))
	}
}
