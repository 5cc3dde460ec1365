package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Heads compares a decoder's outputs beside its logits: hidden states of all rows from within a layer, the residual
// stream after it, and the result of another head for the wanted rows.
func Heads(t *testing.T, d, oracle backend.Device) {
	const n = 9
	m := manyHeaded(t)
	run := func(d backend.Device) (map[string][]float32, []float32) {
		c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1), MaxRows: n, MaxWanted: n}}
		l := load(t, d, m, c)
		s := l.Steps()[0]
		s.Tokens, s.Wanted = prompt(3, n, 70), []int32{2, n - 1}
		s.Spans = []backend.Span{{Rows: n, Tables: Tables(m.Program, []int32{0})}}
		outputs := l.handed(t, s, nil)
		return outputs, append([]float32(nil), s.Logits[:2*70]...)
	}
	got, logits := run(d)
	want, wanted := run(oracle)
	require.Len(t, want["value"], 2*3, "of the wanted rows")
	for name, width := range map[string]int{"stream": 64, "hidden": 96, "value": 3} {
		require.Len(t, got[name], len(want[name]), name)
		for i := range want[name] {
			near(t, got[name], want[name], i, width, 1e-3)
		}
	}
	for i := range wanted {
		near(t, logits, wanted, i, 70, 1e-3)
	}
}

func manyHeaded(t *testing.T) *Model {
	s := small{width: 64, ffn: 96, heads: 4, kvHeads: 2, head: 16}
	b := ir.NewBuilder("heads", hasNone)
	x := b.Embed("token_embd", 70, s.width)
	b.Layer(0)
	x = b.Output("stream", mixOf(s, b, x))
	b.FFN()
	g := b.Output("hidden", b.SwiGLU(b.Linear(x, "ffn_gate", s.ffn), b.Linear(x, "ffn_up", s.ffn)))
	x = b.RMSNorm(b.Rows(b.Add(x, b.Linear(g, "ffn_down", s.width))), "output_norm", 1e-5)
	b.Output("value", b.Linear(x, "value", 3))
	b.Head(x, "output", "token_embd")
	p, err := b.Program(1 << 10)
	require.NoError(t, err)
	m, err := made(judge.Random(p, 5, judge.All(quant.F32)))
	require.NoError(t, err)
	return m
}
