package ref

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestWhereItWentWrong: errors say which weight is not there, and where a number stopped being one.
func TestWhereItWentWrong(t *testing.T) {
	b := ir.NewBuilder("test", nil)
	b.Head(b.Rows(b.Embed("token_embd", 3, 2)), "output", "token_embd")
	p, err := b.Program(8)
	require.NoError(t, err)
	bound, err := ir.Bind(p, []ir.Tensor{{Name: "token_embd.weight", Type: quant.F32, Shape: []int{2, 3}}})
	require.NoError(t, err)
	m, err := New().Compile(bound, backend.Config{Limits: backend.Limits{KV: backend.KVF32, MaxRows: 2,
		MaxWanted: 2}})
	require.NoError(t, err)
	defer m.Close()
	s := backend.Step{
		Tokens: []int32{0, 1}, Spans: []backend.Span{{Rows: 2}}, Wanted: []int32{1},
		Logits: make([]float32, 3),
	}
	data := make([]byte, 24)
	require.NoError(t, quant.Quantize(quant.F32, data, []float32{1, 2, 3e38, 4, 5, 3e38}))
	require.NoError(t, m.Upload(0, 0, data[:16]))
	require.EqualError(t, backend.Enqueue(m, 0, &s), "embed, node 0, embed: token_embd.weight: 1 rows were not uploaded")
	m.Finish(&s, func(err error) { require.NoError(t, err) })
	require.NoError(t, m.Upload(0, 2, data[16:]))
	require.NoError(t, backend.Enqueue(m, 0, &s))
	require.EqualError(t, backend.Enqueue(m, 1, &s), "head, node 1, linear: row 0, feature 1 is +Inf")
	require.EqualError(t, backend.Enqueue(m, 2, &s), "segment 2 of 2 is not computed here")
}
