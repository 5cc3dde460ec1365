package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Nemotron 3 and 4, Minitron. Paper: arXiv:2402.16819; compared with llama.cpp.
// Differs from Llama: LayerNorm with bias, whose weights in files include the 1 that Nemotron adds; RoPE turns halves
// of a part of each head; a feed-forward network without gate, squared ReLU.
func nemotron(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.LayerNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.ungated(b, b.LayerNorm(x, "ffn_norm", s.eps), ir.ReLU2))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
