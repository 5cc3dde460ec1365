package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// orders are programs whose segments are not a mix and a dense ffn in every layer between embed and head.
var orders = []struct {
	name   string
	record func(s small, b *ir.Builder, x ir.Value)
}{
	{"bare", func(_ small, b *ir.Builder, x ir.Value) { headOf(b, x) }},
	{"mixes", func(s small, b *ir.Builder, x ir.Value) {
		for l := range s.layers {
			b.Layer(l)
			x = mixOf(s, b, x)
		}
		headOf(b, x)
	}},
	{"networks", func(s small, b *ir.Builder, x ir.Value) { // without a cache
		for l := range s.layers {
			b.Layer(l)
			x = denseOf(s, b, x)
		}
		headOf(b, x)
	}},
	{"experts", func(s small, b *ir.Builder, x ir.Value) { // without a cache, and experts follow experts
		for l := range s.layers {
			b.Layer(l)
			x = expertsOf(s, b, x, l > 0)
		}
		headOf(b, x)
	}},
	{"hybrid", func(s small, b *ir.Builder, x ir.Value) { // layers of one part, of two and of none
		b.Layer(0)
		x = denseOf(s, b, x)
		b.Layer(1)
		x = mixOf(s, b, x)
		b.Layer(2)
		b.FFN()
		b.Layer(3)
		x = expertsOf(s, b, mixOf(s, b, x), true)
		b.Layer(4)
		x = expertsOf(s, b, x, false)
		b.Layer(5)
		headOf(b, denseOf(s, b, mixOf(s, b, x)))
	}},
	{"encoder", func(s small, b *ir.Builder, x ir.Value) { // vectors narrower than the stream
		for l := range s.layers {
			b.Layer(l)
			x = denseOf(s, b, mixOf(s, b, x))
		}
		x = b.RMSNorm(b.Pool(x), "output_norm", 1e-5)
		b.Vectors(b.Slice(b.Linear(x, "dense_2", 96), 32, s.width/2))
	}},
	{"encoder of experts", func(s small, b *ir.Builder, x ir.Value) { // vectors as wide as the stream, normed in place
		b.Layer(0)
		x = expertsOf(s, b, mixOf(s, b, x), true)
		b.Vectors(b.RMSNorm(b.Pool(x), "output_norm", 1e-5))
	}},
	{"shared early", func(s small, b *ir.Builder, x ir.Value) { // the route changes the stream that the experts add to
		b.Layer(0)
		x = mixOf(s, b, x)
		b.FFN()
		n := b.RMSNorm(x, "ffn_norm", 1e-5)
		x = b.Add(x, b.Linear(b.Act(ir.ReLU2, b.Linear(n, "ffn_up_shexp", s.ffn)), "ffn_down_shexp", s.width))
		headOf(b, b.Add(x, chosenOf(s, b, n)))
	}},
}

// ordered records one of orders.
func ordered(s small, record func(small, *ir.Builder, ir.Value)) (*ir.Program, error) {
	b := ir.NewBuilder("ordered", hasNone)
	record(s, b, b.Embed("token_embd", s.vocab, s.width))
	return b.Program(1 << 10)
}

func mixOf(s small, b *ir.Builder, x ir.Value) ir.Value {
	n, kv := b.RMSNorm(x, "attn_norm", 1e-5), s.kvHeads*s.head
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
	q := ir.CaseRope(b, b.Linear(n, "attn_q", s.heads*s.head), s.head, s.head, false, "rope_freqs.weight") // shared by layers
	k := ir.CaseRope(b, b.Linear(n, "attn_k", kv), s.head, s.head, false, "rope_freqs.weight")
	return b.Add(x, b.Linear(b.Attend(q, k, b.Linear(n, "attn_v", kv), a), "attn_output", s.width))
}

func denseOf(s small, b *ir.Builder, x ir.Value) ir.Value {
	b.FFN()
	n := b.RMSNorm(x, "ffn_norm", 1e-5)
	g := b.SwiGLU(b.Linear(n, "ffn_gate", s.ffn), b.Linear(n, "ffn_up", s.ffn))
	return b.Add(x, b.Linear(g, "ffn_down", s.width))
}

// expertsOf records a mixture, with a network that all rows share if shared is set.
func expertsOf(s small, b *ir.Builder, x ir.Value, shared bool) ir.Value {
	b.FFN()
	n := b.RMSNorm(x, "ffn_norm", 1e-5)
	if !shared {
		return b.Add(x, chosenOf(s, b, n))
	}
	y := b.Linear(b.Act(ir.ReLU2, b.Linear(n, "ffn_up_shexp", s.ffn)), "ffn_down_shexp", s.width)
	return b.Add(x, b.Add(chosenOf(s, b, n), y))
}

// chosenOf records a route that uses all of 4 experts, so that rounding cannot change the choice.
func chosenOf(s small, b *ir.Builder, n ir.Value) ir.Value {
	w := b.Route(b.Linear(n, "ffn_gate_inp", 4), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 4, Scale: 1})
	return b.Experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", s.ffn, 4, ir.SiLU)
}

// headOf records a head tied to the embedding.
func headOf(b *ir.Builder, x ir.Value) {
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
}

// allOrders compares the orders with the oracle, and holds them to the laws.
func allOrders(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	s := small{layers: 2, width: 64, ffn: 96, vocab: 70, heads: 4, kvHeads: 2, head: 16}
	for _, o := range orders {
		p, err := ordered(s, o.record)
		require.NoError(t, err, o.name)
		for _, typ := range matrixTypes {
			if typ != quant.F32 && typ != quant.Q8_0 { // what types do is seen elsewhere
				continue
			}
			t.Run(o.name+" "+typ.String(), func(t *testing.T) {
				m, err := made(judge.Random(p, 7, judge.All(typ)))
				require.NoError(t, err)
				got, want := both(t, d, oracle, m, backend.KVF32, prompt(8, 22, s.vocab))
				require.Len(t, want, 22*m.OutputWidth())
				tolerance := 2e-4
				if typ.Block() > 1 {
					tolerance = 0.08
				}
				require.LessOrEqual(t, judge.Relative(got, want), tolerance)
				w := newLawful(t, d, m)
				w.fewTimes(t)
				w.wanted(t)
			})
		}
	}
}
