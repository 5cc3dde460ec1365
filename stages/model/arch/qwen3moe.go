package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 3 with experts. Paper: arXiv:2505.09388; checked against transformers, modeling_qwen3_moe.py.
// Differs from Qwen 3: every layer has experts, whose weights are a softmax over all, normalised.
func qwen3moe(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	p.qwen3moe(b, &s, p.rope(&s, halves, 10000))
}

// qwen3moe records the layers and the head.
func (p *params) qwen3moe(b *ir.Builder, s *shape, r rope) {
	m := p.mixture(s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, m.network(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
