package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Grok 1 and 2. Compared with llama.cpp.
// Differs from Mixtral: embeddings, scores and logits have multipliers of their own; soft caps on scores and, where the
// file says so, logits; blocks are normalised before and after; GELU; RoPE turns halves. Grok 2 has a dense network
// beside the experts, and 1/√2 of the sum of both goes on.
func grok(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	m.act = ir.GELU
	a := s.attention() // defaults are Grok 1's, whose files do not carry them
	a.Scale = float32(p.positiveOr("attention.output_scale", 0.08838834764831845))
	a.SoftCap = float32(p.positiveOr("attn_logit_softcapping", 30))
	logits := float32(p.positiveOr("logit_scale", 0.5773502691896257))
	final := float32(p.optional("final_logit_softcapping"))

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), float32(p.positiveOr("embedding_scale", 78.38367176906169)))
	for l := range s.layers {
		b.Layer(l)
		o := s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a)
		x = b.Add(x, b.RMSNorm(o, "attn_output_norm", s.eps))
		b.FFN()
		n, after := b.RMSNorm(x, "ffn_norm", s.eps), "post_ffw_norm"
		if b.Has("layer_output_norm.weight") {
			after = "layer_output_norm"
		}
		var f ir.Value
		if b.Has("ffn_up.weight") {
			dense := s.gated(b, n, ir.GELU)
			f = b.Scale(b.Add(dense, m.network(b, n)), math.Sqrt2/2)
		} else {
			f = m.network(b, n)
		}
		x = b.Add(x, b.RMSNorm(f, after, s.eps))
	}
	b.Logits(b.SoftCap(b.Scale(s.head(b, x), logits), final))
}
