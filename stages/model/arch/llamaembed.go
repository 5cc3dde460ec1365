package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Llama-Embed-Nemotron. Paper: arXiv:2511.07025; compared with llama.cpp.
// Differs from Llama: rows see those after them; the end is a vector for each row.
func llamaEmbed(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	a := s.attention()
	a.Both = true

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	b.Vectors(b.RMSNorm(b.Pool(x), "output_norm", s.eps))
	b.Pooling(p.pooling())
	b.Ignore("output.weight")
}
