package arch

import "github.com/sluice-ai/sluice/internal/ir"

// StableLM 2 and its kin. Paper: arXiv:2402.17834; compared with llama.cpp.
// Differs from Llama: LayerNorm with bias; RoPE turns halves of a part of each head. Layers without a second norm
// feed both blocks from the first one, and are one segment then.
func stableLM(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.LayerNorm(x, "attn_norm", s.eps)
		attended := s.selfAttend(b, n, r, s.attention())
		if !b.Has("ffn_norm.weight") {
			x = b.Add(x, b.Add(attended, s.swiglu(b, n)))
			continue
		}
		x = b.Add(x, attended)
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.LayerNorm(x, "ffn_norm", s.eps)))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
