package ref

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestActivations has the values of the definitions, from tables of erf, tanh and exp.
func TestActivations(t *testing.T) {
	for _, c := range []struct {
		act     ir.Act
		x, want float64
	}{
		{ir.SiLU, 1, 0.7310585786300049}, {ir.SiLU, -800, 0}, {ir.SiLU, 800, 800},
		{ir.GELU, 1, 0.8411919906082768}, {ir.GELU, -30, 0}, {ir.GELU, 30, 30},
		{ir.GELUErf, 1, 0.8413447460685429}, {ir.GELUErf, -1, -0.15865525393145707},
		{ir.ReLU2, 3, 9}, {ir.ReLU2, -3, 0},
		{ir.Sigmoid, 0, 0.5}, {ir.Sigmoid, 2, 0.8807970779778823}, {ir.Sigmoid, -800, 0},
	} {
		require.InDelta(t, c.want, activate(c.act, c.x), 1e-15, "%s(%v)", c.act, c.x)
	}
	require.InDelta(t, 5*0.9640275800758169, softCap(10, 5), 1e-6)
}

// TestWhereItWentWrong: errors say which weight is not there, and where a number stopped being one.
func TestWhereItWentWrong(t *testing.T) {
	b := ir.NewBuilder("test", nil)
	b.Head(b.Rows(b.Embed("token_embd", 3, 2)), "output", "token_embd")
	p, err := b.Program(8)
	require.NoError(t, err)
	bound, err := ir.Bind(p, []ir.Tensor{{Name: "token_embd.weight", Type: quant.F32, Shape: []int{2, 3}}})
	require.NoError(t, err)
	m, err := New().Compile(bound, backend.Config{KV: backend.KVF32, Blocks: 1, MaxRows: 2, MaxWanted: 2})
	require.NoError(t, err)
	defer m.Close()
	s := backend.Step{
		Tokens: []int32{0, 1}, Spans: []backend.Span{{Rows: 2, Table: []int32{0}}}, Wanted: []int32{1},
		Logits: make([]float32, 3),
	}
	data := make([]byte, 24)
	require.NoError(t, quant.Quantize(quant.F32, data, []float32{1, 2, 3e38, 4, 5, 3e38}))
	require.NoError(t, m.Upload(0, 0, data[:16]))
	require.EqualError(t, m.Run(0, &s), "embed, node 0, embed: token_embd.weight: 1 rows were not uploaded")
	require.NoError(t, m.Upload(0, 2, data[16:]))
	require.NoError(t, m.Run(0, &s))
	require.EqualError(t, m.Run(1, &s), "head, node 1, linear: row 0, feature 1 is +Inf")
	require.EqualError(t, m.Run(2, &s), "segment 2 of 2")
}
