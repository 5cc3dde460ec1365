package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Arcee's AFM 4.5B. Compared with llama.cpp.
// Differs from Llama: a feed-forward network without gate, the square of ReLU.
func arcee(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.ungated(b, b.RMSNorm(x, "ffn_norm", s.eps), ir.ReLU2))
	}
	s.head(b, x)
}
