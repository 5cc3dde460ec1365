package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Snowflake Arctic. Compared with llama.cpp.
// Differs from Mixtral: a layer has a dense network as wide as the residual stream, which follows attention, and
// experts, which see what the layer began with through a norm of their own.
func arctic(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	s.ffn = s.width

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		b.FFN() // also attention: a mix segment would have to carry two values
		after := b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		after = b.Add(after, s.swiglu(b, b.RMSNorm(after, "ffn_norm", s.eps)))
		x = b.Add(after, m.network(b, b.RMSNorm(x, "ffn_norm_exps", s.eps)))
	}
	s.head(b, x)
}
