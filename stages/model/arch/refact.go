package arch

import "github.com/sluice-ai/sluice/internal/ir"

// maxBias is the exponent of ALiBi's last slope where no key has it.
const maxBias = 8

// Refact. Compared with llama.cpp.
// Differs from Llama: nothing rotates, scores fall with the distance (ALiBi).
func refact(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	a := s.attention()
	a.Alibi = maxBias

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), rope{}, a))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
