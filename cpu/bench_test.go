package cpu_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// openMini writes the embedded model to a file and loads it.
func openMini(t testing.TB) *backendtest.Model {
	path := filepath.Join(t.TempDir(), "mini.gguf")
	require.NoError(t, os.WriteFile(path, mini.GGUF, 0o600))
	return archtest.Open(t, path, nil)
}

// running is a model on a device with the step that its sequence is at.
type running struct {
	backend.Model
	step     backend.Step
	segments int
	vocab    int
	program  *ir.Program
	table    []int32
}

// start compiles a model for one sequence of at most context positions, in steps of at most rows.
func start(t testing.TB, d backend.Device, m *backendtest.Model, kv backend.KV, context, rows int) *running {
	t.Helper()
	blocks := (context + backend.BlockSize - 1) / backend.BlockSize
	return startWith(t, d, m, backend.Config{Limits: backend.Limits{KV: kv,
		Blocks: backendtest.Blocks(m.Program, blocks), MaxRows: rows, MaxWanted: rows}})
}

// startWith uploads the weights that are not in place.
func startWith(t testing.TB, d backend.Device, m *backendtest.Model, c backend.Config) *running {
	t.Helper()
	run := startNone(t, d, m, c)
	for r, data := range m.Weights[len(c.InPlace()):] {
		require.NoError(t, run.Upload(ir.Ref(r), 0, data))
	}
	return run
}

// startNone uploads nothing.
func startNone(t testing.TB, d backend.Device, m *backendtest.Model, c backend.Config) *running {
	t.Helper()
	model, err := d.Compile(m.Bound, c)
	require.NoError(t, err)
	blocks, rows := slices.Max(c.Blocks), c.MaxRows
	run := &running{Model: model, segments: len(m.Segments), vocab: m.Vocab, program: m.Program}
	for i := range blocks {
		run.table = append(run.table, int32(blocks-1-i))
	}
	run.step.Logits = make([]float32, rows*m.Vocab)
	run.step.Spans = make([]backend.Span, 1)
	run.step.Tokens = make([]int32, 0, rows)
	run.step.Wanted = make([]int32, 0, rows)
	return run
}

// at prepares a step of n rows from position pos on, of which the last wanted ones give logits.
func (r *running) at(pos, n, wanted int) {
	r.step.Spans[0] = backend.Span{Rows: n, Pos: pos, Tables: backendtest.Tables(r.program, r.table)}
	r.step.Tokens, r.step.Wanted = r.step.Tokens[:0], r.step.Wanted[:0]
	for i := range n {
		r.step.Tokens = append(r.step.Tokens, token(pos+i, r.vocab))
	}
	for i := n - wanted; i < n; i++ {
		r.step.Wanted = append(r.step.Wanted, int32(i))
	}
}

// token is what stands at a position of every sequence.
func token(pos, vocab int) int32 { return int32(pos * 2654435761 >> 7 % vocab) }

func (r *running) run() error {
	r.step.Restart() // it is run again and again, and not finished
	for i := range r.segments {
		if err := backend.Enqueue(r, i, &r.step); err != nil {
			return err
		}
	}
	return nil
}

// fill computes positions 0 to n.
func (r *running) fill(t testing.TB, n int) {
	t.Helper()
	for pos := 0; pos < n; pos += cap(r.step.Tokens) {
		r.at(pos, min(cap(r.step.Tokens), n-pos), 1)
		require.NoError(t, r.run())
	}
}

func BenchmarkMini(b *testing.B) {
	m := openMini(b)
	d, err := cpu.New(0, os.Getenv("SLUICE_CPU"))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, d.Close()) })
	for _, c := range []struct {
		name    string
		context int // before the measured step
		rows    int
	}{
		{"decode at 64", 64, 1}, {"decode at 512", 512, 1}, {"decode at 4096", 4096, 1}, {"decode at 12288", 12288, 1},
		{"8 rows at 64", 64, 8}, {"prefill 512", 0, 512}, {"prefill 512 at 4096", 4096, 512},
		{"prefill 512 at 12288", 12288, 512},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := start(b, d, m, backend.KVF16, c.context+c.rows, max(512, c.rows))
			defer r.Close()
			r.fill(b, c.context)
			r.at(c.context, c.rows, 1)
			b.ReportAllocs()
			for b.Loop() {
				if err := r.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.rows*b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
