package backendtest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// inputs compares a device's sums over the inputs of products with the oracle's; the sums of a whole prompt must have
// the bits of the sums of its chunks.
func inputs(t *testing.T, d, oracle backend.Device) {
	s := small{layers: 2, width: 256, ffn: 192, vocab: 70, heads: 8, kvHeads: 2, head: 32}
	for _, f := range models {
		t.Run(f.name, func(t *testing.T) {
			p, err := f.record(s)
			require.NoError(t, err)
			m, err := made(judge.Random(p, 11, judge.All(quant.F32)))
			require.NoError(t, err)
			tokens := prompt(12, 37, s.vocab)
			got, want := observe(t, d, m, tokens, len(tokens)), observe(t, oracle, m, tokens, len(tokens))
			require.Equal(t, got, observe(t, d, m, tokens, 5, 1, 17))
			require.Equal(t, want.Rows, got.Rows)
			matrices := 0
			for r := range want.Squares {
				if want.Squares[r] != nil {
					matrices++
				}
				require.Len(t, got.Squares[r], len(want.Squares[r]))
				for i, sum := range want.Squares[r] {
					require.InDelta(t, sum, got.Squares[r][i], 1e-3*sum+1e-6, "%s, column %d", p.Weights[r].Name, i)
				}
			}
			require.Equal(t, multiplied(p), matrices)
		})
	}
}

// multiplied counts the matrices of a program's products.
func multiplied(p *ir.Program) (n int) {
	for i := range p.Weights {
		if p.Weights[i].Use&ir.Matrix != 0 {
			n++
		}
	}
	return n
}

// observe runs tokens in chunks, and returns what went into the products.
func observe(t *testing.T, d backend.Device, m *Model, tokens []int32, chunks ...int) *backend.Inputs {
	t.Helper()
	n := len(tokens)
	in := backend.NewInputs(m.Bound)
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1), MaxRows: n,
		MaxWanted: n}, Observer: backend.Observer{Inputs: in}}
	load(t, d, m, c).sequence(t, tokens, table(n, 0), chunks...)
	return in
}

// stored compares what a device says that it stores in caches with what the oracle does, in one chunk and in several.
func stored(t *testing.T, d, oracle backend.Device) {
	s := small{layers: 3, width: 32, ffn: 96, vocab: 51, heads: 4, kvHeads: 2, head: 16, window: 70}
	for _, kv := range []backend.KV{backend.KVQ8, Toy()} {
		t.Run(kv.String(), func(t *testing.T) {
			p, err := gemmaLike(s)
			require.NoError(t, err)
			m, err := made(judge.Random(kv.Sealing(p), 11, judge.All(quant.F32)))
			require.NoError(t, err)
			tokens := prompt(12, backend.BlockSize+9, s.vocab)
			want := storing(t, oracle, m, kv, tokens, len(tokens))
			require.Len(t, want, 3*2, "caches and heads")
			for _, chunks := range [][]int{{len(tokens)}, {7, 1, 30}} {
				got := storing(t, d, m, kv, tokens, chunks...)
				require.Len(t, got, len(want))
				for at, x := range want {
					require.Equal(t, x.rows, got[at].rows)
					require.InDelta(t, x.key, got[at].key, 1e-2*x.key, "K of %v", at)
					require.InDelta(t, x.value, got[at].value, 1e-2*x.value, "V of %v", at)
				}
			}
		})
	}
}

// seenRows are rows that were stored: how many, and the sums of their squares.
type seenRows struct {
	rows       int
	key, value float64
}

// storing runs tokens in chunks, and returns what was stored, by cache and head.
func storing(t *testing.T, d backend.Device, m *Model, kv backend.KV, tokens []int32,
	chunks ...int) map[[2]int]seenRows {
	t.Helper()
	var mu sync.Mutex
	seen, n := map[[2]int]seenRows{}, len(tokens)
	c := backend.Config{Limits: backend.Limits{KV: kv, Blocks: Blocks(m.Program, backend.BlocksFor(n)), MaxRows: n,
		MaxWanted: n}}
	c.Stored = func(cache, head int, key, value []float32) {
		mu.Lock()
		defer mu.Unlock()
		x := seen[[2]int{cache, head}]
		x.rows, x.key, x.value = x.rows+1, x.key+squares(key), x.value+squares(value)
		seen[[2]int{cache, head}] = x
	}
	load(t, d, m, c).sequence(t, tokens, table(n, 0), chunks...)
	return seen
}

func squares(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}
