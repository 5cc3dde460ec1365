package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Cohere Command-R, and Command-R7B and Command A (cohere2). Command-R was checked against transformers,
// modeling_cohere.py, cohere2 compared with llama.cpp.
// Differs from Llama: one LayerNorm without bias feeds attention and feed-forward network, whose outputs are added to
// the residual stream together; logits are multiplied by a constant. A layer is one segment, since its halves share
// their input. cohere2 has a window on all but every fourth layer, and RoPE on those alone. Command-R+
// normalises each head of Q and K before RoPE, by weights of its own.
func commandR(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	near := p.rope(&s, neighbours, 10000)
	scale := float32(p.positiveOr("logit_scale", 1))
	window, local := p.window(), p.local(s.layers, 4)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, r := s.attention(), near
		switch {
		case window > 0 && local(l):
			a.Window = window
		case window > 0:
			r = rope{}
		}
		b.Layer(l)
		n := b.LayerNormNoBias(x, "attn_norm", s.eps)
		q, k, v := s.qkv(b, n)
		if b.Has("attn_q_norm.weight") {
			q = b.EachHeadLayerNorm(q, "attn_q_norm", s.kDim, s.eps)
			k = b.EachHeadLayerNorm(k, "attn_k_norm", s.kDim, s.eps)
		}
		o := b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, a), "attn_output", s.width)
		x = b.Add(x, b.Add(o, s.swiglu(b, n)))
	}
	n := b.LayerNormNoBias(b.Rows(x), "output_norm", s.eps)
	b.Logits(b.Scale(b.Head(n, "output", "token_embd"), scale))
}
