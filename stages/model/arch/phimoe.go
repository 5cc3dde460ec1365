package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Phi 3.5 MoE and Phi-mini-MoE. Paper: arXiv:2404.14219; after transformers, modeling_phimoe.py.
// Differs from Phi 3: Q, K and V are matrices of their own, with biases, as the output has; norms are LayerNorms;
// experts, of which a sparse mixer chooses two and weighs each by itself. llama.cpp computes RMS norms and a softmax
// over the two instead, which is not what such models were trained with.
func phiMoE(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.longRope(&s, b)
	a := s.attention()
	a.Window = p.window()
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SparseMixer})

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		o := s.selfAttend(b, b.LayerNorm(x, "attn_norm", s.eps), r, a)
		x = b.Add(x, o)
		b.FFN()
		x = b.Add(x, m.network(b, b.LayerNorm(x, "ffn_norm", s.eps)))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
