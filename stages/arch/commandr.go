package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Cohere Command-R. Checked against transformers, modeling_cohere.py.
// Differs from Llama: one LayerNorm without bias feeds attention and feed-forward network, whose outputs are added to
// the residual stream together; logits are multiplied by a constant. A layer is one segment, since its halves share
// their input. Command-R+, which normalises heads too, is not supported.
func commandR(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, neighbours, 10000)
	scale := float32(p.positiveOr("logit_scale", 1))

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.LayerNormNoBias(x, "attn_norm", s.eps)
		attended := s.selfAttend(b, n, r, s.attention())
		x = b.Add(x, b.Add(attended, s.swiglu(b, n)))
	}
	n := b.LayerNormNoBias(b.Rows(x), "output_norm", s.eps)
	b.Logits(b.Scale(b.Head(n, "output", "token_embd"), scale))
}
