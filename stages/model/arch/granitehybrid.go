package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Granite 4 hybrids. Compared with llama.cpp.
// Differs from Granite: most layers have a Mamba-2 mixer instead of attention, which has RoPE unless the file says that
// it has none; experts have a network beside them that all rows share.
func graniteHybrid(p *params, b *ir.Builder) {
	const turned = "rope.scaling.finetuned" // what llama.cpp writes it as
	s, attends := p.hybrid("attention.layer_norm_rms_epsilon")
	var r rope
	if !p.has(turned) || p.flag(turned) {
		r = p.rope(&s, neighbours, 10000)
	}
	a, m, by := s.attention(), p.states(), p.multipliers(1, 1, 1)
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))
	feed := s.swiglu
	if p.hasExperts() {
		m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxChosen})
		if p.has("expert_shared_feed_forward_length") {
			m.shared = p.integer("expert_shared_feed_forward_length", 0, maxFFN)
		}
		feed = m.besideShared
	}

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), by.embedding)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		var o ir.Value
		if attends(l) {
			o = s.selfAttend(b, n, r, a)
		} else {
			o = m.space(b, n, &s, b.Has("ssm_norm.weight"))
		}
		x = b.Add(x, b.Scale(o, by.residual))
		b.FFN()
		x = b.Add(x, b.Scale(feed(b, b.RMSNorm(x, "ffn_norm", s.eps)), by.residual))
	}
	b.Logits(b.Scale(s.head(b, x), by.logits))
}
