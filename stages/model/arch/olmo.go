package arch

import "github.com/sluice-ai/sluice/internal/ir"

// OLMo 1. Paper: arXiv:2402.00838; compared with llama.cpp.
// Differs from Llama: LayerNorms without weights. Models that clip Q, K and V are refused.
func olmo(p *params, b *ir.Builder) {
	const clip = "attention.clamp_kqv"
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, neighbours, 10000)
	if p.optional(clip) != 0 {
		p.faultf("%s: is %v, and clipping Q, K and V is not supported", p.key(clip), p.optional(clip))
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.BareLayerNorm(x, s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.BareLayerNorm(x, s.eps)))
	}
	b.Head(b.BareLayerNorm(b.Rows(x), s.eps), "output", "token_embd")
}
