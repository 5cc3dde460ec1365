package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
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
			m, err := randomModel(p, 11, all(quant.F32))
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
