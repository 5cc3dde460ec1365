package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Ahead compares texts with rows that see each other, as those of a picture do, with the oracle: across blocks, with
// windows and without, in caches that seal blocks. Steps that are cut before and behind such rows, and rows beside
// them, change no bit.
func Ahead(t *testing.T, d, oracle backend.Device) {
	const from, to, n = 50, 140, 2*backend.BlockSize + 50
	for _, kv := range []backend.KV{backend.KVF32, backend.KVQ8, Toy()} {
		t.Run(kv.String(), func(t *testing.T) {
			s := small{layers: 3, width: 32, ffn: 96, vocab: 51, heads: 4, kvHeads: 2, head: 16, window: 70}
			p, err := gemmaLike(s)
			require.NoError(t, err)
			m, err := made(judge.Random(kv.Sealing(p), 11, judge.All(quant.F32)))
			require.NoError(t, err)
			tokens := prompt(12, n, m.Vocab)
			got, want := ahead(t, d, m, kv, tokens, from, to, n), ahead(t, oracle, m, kv, tokens, from, to, n)
			worst, at := distance(got, want)
			require.LessOrEqualf(t, worst, 2e-3, "position %d", at/m.Vocab)
			sameBits(t, "in pieces", m.Vocab, ahead(t, d, m, kv, tokens, from, to, 7, from, to, to+1, n), got)
			without := ahead(t, d, m, kv, tokens, 0, 0, n)
			require.Equal(t, without[:from*m.Vocab], got[:from*m.Vocab], "rows before see none of them")
			require.NotEqual(t, without[from*m.Vocab:], got[from*m.Vocab:])
		})
	}
}

// ahead runs tokens in pieces that end at some positions, beside another sequence. Rows from … to−1 see each other.
func ahead(t *testing.T, d backend.Device, m *Model, kv backend.KV, tokens []int32, from, to int,
	ends ...int) (logits []float32) {
	t.Helper()
	n := len(tokens)
	c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: Blocks(m.Program, 2*backend.BlocksFor(n))}}
	c.MaxRows, c.MaxWanted = n+3, n+3
	l := load(t, d, m, c)
	pos := 0
	for _, end := range ends {
		s := l.Steps()[0]
		s.Tokens = append([]int32{1, 2, 3}, tokens[pos:end]...)
		span := backend.Span{Row: 3, Rows: end - pos, Pos: pos, Tables: Tables(m.Program, []int32{2, 0, 1})}
		if pos < to && from < end {
			for at := pos; at < end; at++ {
				last := int32(at)
				if at >= from && at < to {
					last = int32(to - 1)
				}
				span.Sees = append(span.Sees, last)
			}
		}
		beside := []int32{int32(2*backend.BlocksFor(n) - 1)}
		s.Spans = []backend.Span{{Rows: 3, Tables: Tables(m.Program, beside)}, span}
		s.Wanted = nil
		for i := range s.Tokens {
			s.Wanted = append(s.Wanted, int32(i))
		}
		require.NoError(t, l.run(s))
		logits = append(logits, s.Logits[3*m.Vocab:len(s.Tokens)*m.Vocab]...)
		pos = end
	}
	return logits
}
