package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Granite 3 and 4, dense or with experts. Checked against transformers, modeling_granite.py and modeling_granitemoe.py.
// Differs from Llama by four multipliers: of embeddings, scores, what blocks add to the residual stream, and (a
// divisor) logits.
func granite(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	feed := p.feed(&s, ir.RouteArgs{Scoring: ir.SoftmaxChosen})
	r := p.rope(&s, neighbours, 10000)
	a := s.attention()
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))
	embedding := float32(p.positiveOr("embedding_scale", 1))
	residual := float32(p.positiveOr("residual_scale", 1))
	logits := float32(1 / p.positiveOr("logit_scale", 1))

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), embedding)
	for l := range s.layers {
		b.Layer(l)
		o := s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a)
		x = b.Add(x, b.Scale(o, residual))
		b.FFN()
		f := feed(b, b.RMSNorm(x, "ffn_norm", s.eps))
		x = b.Add(x, b.Scale(f, residual))
	}
	b.Logits(b.Scale(s.head(b, x), logits))
}
