package ref

import (
	"math"
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
	for _, c := range []struct{ x, up, want float64 }{
		{1, 2, 2.537387297798464}, {9, 9, 55.99962502642654}, {-800, -9, 0}, {0.5, -9, -2.102330619638281},
	} {
		require.InDelta(t, c.want, gate(ir.Clamped, c.x, c.up), 1e-12, "clamped %v, %v", c.x, c.up)
	}
}

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
	require.EqualError(t, m.Enqueue(0, &s), "embed, node 0, embed: token_embd.weight: 1 rows were not uploaded")
	require.NoError(t, m.Upload(0, 2, data[16:]))
	require.NoError(t, m.Enqueue(0, &s))
	require.EqualError(t, m.Enqueue(1, &s), "head, node 1, linear: row 0, feature 1 is +Inf")
	require.EqualError(t, m.Enqueue(2, &s), "segment 2 of 2 is not computed here")
}

// TestRoute has choices and weights worked out by hand: e⁰ = 1, and logits are logarithms.
func TestRoute(t *testing.T) {
	log := func(x float64) float32 { return float32(math.Log(x)) }
	logits := []float32{log(1), log(4), log(2), log(4), log(3), log(2)}
	for _, c := range []struct {
		name string
		args ir.RouteArgs
		bias []float32
		want []float32
	}{
		{"all", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Scale: 1}, nil, []float32{0, 0.25, 0, 0.25, 0, 0}},
		{"normalised", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 3, Normalise: true, Scale: 11}, nil,
			[]float32{0, 4, 0, 4, 3, 0}},
		{"chosen", ir.RouteArgs{Scoring: ir.SoftmaxChosen, Used: 3, Scale: 1}, nil,
			[]float32{0, 4. / 11, 0, 4. / 11, 3. / 11, 0}},
		{"first of equal ones", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 4, Scale: 16}, nil,
			[]float32{0, 4, 2, 4, 3, 0}},
		{"sigmoid", ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 1, Scale: 1}, nil, []float32{0, 0.8, 0, 0, 0, 0}},
		{"bias", ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 2, Scale: 2}, []float32{1, 0, 0, 0, 0, 0},
			[]float32{1, 1.6, 0, 0, 0, 0}},
		{"groups", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Groups: 3, GroupsUsed: 1, GroupBest: 2, Scale: 16}, nil,
			[]float32{0, 0, 2, 4, 0, 0}},
		{"groups of many", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Groups: 2, GroupsUsed: 1, GroupBest: 2, Scale: 16}, nil,
			[]float32{0, 0, 0, 4, 3, 0}},
		{"groups by their best", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Groups: 2, GroupsUsed: 1, GroupBest: 1, Scale: 16}, nil,
			[]float32{0, 4, 2, 0, 0, 0}},
		{"mixer", ir.RouteArgs{Scoring: ir.SparseMixer, Used: 3, Scale: 6}, nil, []float32{0, 3, 0, 6, 6, 0}},
	} {
		p := &ir.Bound{Program: &ir.Program{Widths: []int{6, 6}}}
		m := &model{p: p, values: [][]float32{logits, make([]float32, 6)}}
		n := &ir.Node{Op: ir.Route, In: []ir.Value{0}, Out: 1, W: ir.NoRef, B: ir.NoRef, Route: &c.args}
		if c.bias != nil {
			w, err := newWeight(&ir.Weight{Rows: 1, Cols: 6}, quant.F32)
			require.NoError(t, err)
			require.NoError(t, quant.Quantize(quant.F32, w.data, c.bias))
			n.B, m.weights = 0, []weight{w}
		}
		m.route(n)
		require.InDeltaSlice(t, c.want, m.values[1], 1e-6, c.name)
	}
}
