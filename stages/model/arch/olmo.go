package arch

import "github.com/sluice-ai/sluice/internal/ir"

// OLMo 1. Paper: arXiv:2402.00838; compared with llama.cpp.
// Differs from Llama: LayerNorms without weights; Q, K and V may be clipped.
func olmo(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	s.clip = p.clip()
	r := p.rope(&s, neighbours, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.BareLayerNorm(x, s.eps))
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.BareLayerNorm(x, s.eps)))
	}
	b.Head(b.BareLayerNorm(b.Rows(x), s.eps), "output", "token_embd")
}
