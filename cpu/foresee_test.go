package cpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// still is a mixture whose layers add next to nothing to the stream: what is foreseen of it is what comes. The second
// layer's choice has biases.
func still(t testing.TB, typ quant.Type) *backendtest.Model {
	t.Helper()
	const width, experts, used, ffn = 64, 12, 3, 96
	b := ir.NewBuilder("still", func(name string) bool { return name == "blk.1.ffn_gate_inp.bias" })
	x := b.Embed("token_embd", 300, width)
	for l := range 2 {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		a := ir.AttendArgs{Heads: 4, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.4}
		x = b.Add(x, b.Scale(b.Attend(n, b.Slice(n, 0, 32), b.Slice(n, 32, 32), a), 1e-30))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		bias, scoring := []string{"", "exp_probs_b"}[l], []ir.Scoring{ir.SoftmaxAll, ir.SigmoidEach}[l]
		w := b.Route(b.Linear(n, "ffn_gate_inp", experts), bias, ir.RouteArgs{Scoring: scoring, Used: used, Scale: 1})
		x = b.Add(x, b.Scale(b.Experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", ffn, used, ir.SiLU), 1e-30))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	p, err := b.Program(1 << 14)
	require.NoError(t, err)
	return random(t, p, typ)
}

// TestForesee: what the router will choose is above the cut, and nothing else, while the stream stays as it is.
func TestForesee(t *testing.T) {
	const rows = 5
	for _, typ := range []quant.Type{quant.F32, quant.Q8_0} {
		m := still(t, typ)
		r := start(t, device(t, 2, ""), m, backend.KVF16, rows, rows)
		r.at(0, rows, rows)
		ahead, foreseen := r.Model, map[int][][]int8{}
		for i := range m.Segments {
			kind := m.Segments[i].Kind
			route, ok := ahead.Foresees(i)
			require.Equal(t, m.Segments[i].Layer < 1 && (kind == ir.SegEmbed || kind == ir.SegRoute || kind == ir.SegExperts),
				ok, &m.Segments[i])
			require.True(t, !ok || m.Segments[route].Kind == ir.SegRoute)
			told := false
			w := backend.Work{Segment: i, Whole: true, Foreseen: func(margins []int8) {
				foreseen[route], told = append(foreseen[route], append([]int8{}, margins...)), true
			}}
			if kind == ir.SegRoute {
				require.Len(t, foreseen[i], m.Segments[i].Layer+1, "after the embedding; after the route and the experts before")
				w.Chosen = func(experts []int32) {
					for _, margins := range foreseen[i] {
						for row := range rows {
							above(t, margins[row*12:][:12], experts[row*3:][:3])
						}
					}
				}
			}
			require.NoError(t, r.Run(w, &r.step))
			require.Equal(t, ok, told, &m.Segments[i])
		}
		require.NoError(t, r.Close())
	}
}

// above checks that those that were chosen are above the cut, or at it, and others are not.
func above(t *testing.T, margins []int8, chosen []int32) {
	t.Helper()
	for e, margin := range margins {
		if slices.Contains(chosen, int32(e)) {
			require.GreaterOrEqual(t, margin, int8(0), "expert %d of %v", e, margins)
		} else {
			require.LessOrEqual(t, margin, int8(0), "expert %d of %v", e, margins)
		}
	}
	require.Positive(t, slices.Max(margins))
}

// TestForeseeLeavesBits: the result of a step is the same, and nothing is allocated.
func TestForeseeLeavesBits(t *testing.T) {
	const rows = 7
	m := mixture(t, quant.Q8_0)
	r := start(t, device(t, 2, ""), m, backend.KVF16, rows, rows)
	want := logits(t, r, rows, func() int { return rows })
	r.at(0, rows, rows)
	told := 0
	w := backend.Work{Whole: true, Foreseen: func(margins []int8) { told += len(margins) }}
	require.Zero(t, testing.AllocsPerRun(1, func() {
		r.step.Restart()
		for w.Segment = range m.Segments {
			require.NoError(t, r.Run(w, &r.step))
		}
	}))
	require.Equal(t, 3*2*12*rows, told, "after the embedding, the first route and its experts, twice each")
	var got []uint32
	for _, v := range r.step.Logits[:rows*m.Vocab] {
		got = append(got, math.Float32bits(v))
	}
	same(t, want, got, m.Vocab)
	require.NoError(t, r.Close())
}

// TestForeseeNeedsTheRouter: while the router's group is in no slot, nothing is foreseen.
func TestForeseeNeedsTheRouter(t *testing.T) {
	m := mixture(t, quant.Q8_0)
	s := stream(t, m, 2, m.Weights)
	for i := range m.Segments {
		_, ok := s.Model.Foresees(i)
		require.False(t, ok)
	}
	require.NoError(t, s.Close())
}
