package backendtest

import "github.com/sluice-ai/sluice/internal/ir"

// Layer is a layer with head norms and a fused gate and up.
func Layer() *ir.Builder {
	const width, heads, dim, ffn = 64, 2, 32, 96
	b := ir.NewBuilder("layer", hasNone)
	rope := ir.RoPEArgs{HeadDim: dim, Dims: dim, Freq: make([]float64, dim/2), Mscale: 1}
	x := b.Embed("token_embd", 100, width)
	b.Layer(0)
	n := b.RMSNorm(x, "attn_norm", 1e-5)
	q := b.Rope(b.HeadNorm(b.Linear(n, "attn_q", width), "attn_q_norm", dim, 1e-5), rope, "")
	k := b.Rope(b.Linear(n, "attn_k", width), rope, "")
	a := ir.AttendArgs{Heads: heads, KVHeads: heads, KDim: dim, VDim: dim, Scale: 1}
	x = b.Add(x, b.Linear(b.Attend(q, k, b.Linear(n, "attn_v", width), a), "attn_output", width))
	b.FFN()
	both := b.Linear(b.RMSNorm(x, "ffn_norm", 1e-5), "ffn_up", 2*ffn)
	x = b.Add(x, b.Linear(b.SwiGLU(b.Slice(both, 0, ffn), b.Slice(both, ffn, ffn)), "ffn_down", width))
	b.Logits(b.SoftCap(b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd"), 30))
	return b
}

// RoutedLayer is a layer with 8 experts, of which each row uses 3, and with a shared expert if shared is set.
func RoutedLayer(shared bool) *ir.Builder {
	const width, experts, used, ffn = 64, 8, 3, 32
	b := ir.NewBuilder("routed", hasNone)
	x := b.Embed("token_embd", 100, width)
	b.Layer(0)
	a := ir.AttendArgs{Heads: 2, KVHeads: 2, KDim: 32, VDim: 32, Scale: 1}
	x = b.Add(x, b.AttendSinks(x, x, x, "attn_sinks", a))
	b.FFN()
	n := b.RMSNorm(x, "ffn_norm", 1e-5)
	both := n
	if shared {
		g := b.SwiGLU(b.Linear(n, "ffn_gate_shexp", ffn), b.Linear(n, "ffn_up_shexp", ffn))
		both = b.Linear(g, "ffn_down_shexp", width)
	}
	w := b.Route(b.Linear(n, "ffn_gate_inp", experts), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: used, Scale: 1})
	y := b.Experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", ffn, used, ir.SiLU)
	x = b.Add(x, b.Add(y, both))
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b
}

// EncoderLayer is attention in which rows also see those after them, so many positions on each side (0: all), with so
// many KV heads, and biases for so many buckets of distances (0: none).
func EncoderLayer(kvHeads, reach, buckets int) *ir.Builder {
	b := ir.NewBuilder("test", nil)
	x := b.Embed("token_embd", 50, 64)
	b.Layer(0)
	a := ir.AttendArgs{Heads: 4, KVHeads: kvHeads, KDim: 16, VDim: 16, Scale: 0.6, Both: true, Reach: reach}
	q, k, v := b.Linear(x, "attn_q", 64), b.Linear(x, "attn_k", 16*kvHeads), b.Linear(x, "attn_v", 16*kvHeads)
	if buckets > 0 {
		a.Buckets, a.Farthest = buckets, 4*buckets
		x = b.Add(x, b.AttendBiased(q, k, v, "biases", a))
	} else {
		x = b.Add(x, b.Attend(q, k, v, a))
	}
	b.Vectors(b.Pool(x))
	return b
}

// answeringLike has rows that see what an encoder read, whose rows are those of the embedding here, and what was said
// to it, with biases for distances.
func answeringLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("answering-like", hasNone)
	heard := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.4, Side: ir.HeardSide}
	said := heard
	said.Side, said.Buckets, said.Farthest = ir.SaidSide, 8, 32
	first := b.Embed("token_embd", s.vocab, s.width)
	x := first
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		q, k := b.Linear(n, "attn_q", s.heads*s.head), b.Linear(n, "attn_k", s.kvHeads*s.head)
		o := b.AttendBiased(q, k, b.Linear(n, "attn_v", s.kvHeads*s.head), "biases", said)
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		q = b.Linear(b.RMSNorm(x, "cross_attn_norm", 1e-5), "cross_attn_q", s.heads*s.head)
		k = b.Linear(first, "cross_attn_k", s.kvHeads*s.head)
		o = b.Attend(q, k, b.Linear(first, "cross_attn_v", s.kvHeads*s.head), heard)
		x = b.Add(x, b.Linear(o, "cross_attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		g := b.SwiGLU(b.Linear(n, "ffn_gate", s.ffn), b.Linear(n, "ffn_up", s.ffn))
		x = b.Add(x, b.Linear(g, "ffn_down", s.width))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}
