package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Orion. Paper: arXiv:2401.12246; compared with llama.cpp.
// Differs from Llama: LayerNorm with bias; RoPE turns halves.
func orion(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.LayerNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.LayerNorm(x, "ffn_norm", s.eps)))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
