package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Falcon-H1. Report: arXiv:2507.22448; compared with llama.cpp. Its multipliers are folded into the files' weights.
// Differs from Llama: attention and a Mamba-2 mixer see the same normed input, side by side; RoPE turns halves;
// one norm is called without an ending.
func falconH1(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.states()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		attended := s.selfAttend(b, n, r, s.attention())
		x = b.Add(x, b.Add(attended, m.space(b, n, &s, b.Has("ssm_norm.weight"))))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNormBy(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
