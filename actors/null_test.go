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

// nullDevice computes nothing: what a step costs on it is what the actors cost.
type nullDevice struct{}

func (nullDevice) Name() string { return "null" }
func (nullDevice) Close() error { return nil }
func (nullDevice) Compile(p *ir.Bound, _ backend.Config) (backend.Model, error) {
	return &nullModel{vocab: p.Vocab, head: len(p.Segments) - 1}, nil
}

type nullModel struct{ vocab, head int }

func (*nullModel) Upload(ir.Ref, int, []byte) error { return nil }
func (*nullModel) RowGrain() int                    { return 16 }
func (*nullModel) Memory() backend.Memory           { return backend.Memory{} }
func (*nullModel) Close() error                     { return nil }

// Run makes the token after the row's own the likeliest.
func (m *nullModel) Run(segment int, s *backend.Step) error {
	if segment == m.head {
		for i, row := range s.Wanted {
			s.Logits[i*m.vocab+(int(s.Tokens[row])+1)%m.vocab] = 1
		}
	}
	return nil
}

func startNull(tb testing.TB, edit func(*Config)) *Engine {
	f, err := gguf.Open(fixturePath(tb, fixture))
	require.NoError(tb, err)
	cfg := Config{File: f, Device: nullDevice{}, Log: zerolog.Nop(), Context: 1 << 20, Blocks: 1 << 15}
	if edit != nil {
		edit(&cfg)
	}
	e, err := Start(context.Background(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, e.Close(context.Background())) })
	return e
}

// BenchmarkStep is the actors' cost of one token of one sequence.
func BenchmarkStep(b *testing.B) {
	e := startNull(b, nil)
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
