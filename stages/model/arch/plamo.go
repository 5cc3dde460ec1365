package arch

import "github.com/sluice-ai/sluice/internal/ir"

// PLaMo 13B. Compared with llama.cpp.
// Differs from Llama: one norm feeds attention and feed-forward network, whose outputs are added to the residual stream
// together: a layer is one segment. RoPE turns halves.
func plamo(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		x = b.Add(x, b.Add(s.selfAttend(b, n, r, s.attention()), s.swiglu(b, n)))
	}
	s.head(b, x)
}
