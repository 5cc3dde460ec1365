package arch

import "github.com/sluice-ai/sluice/internal/ir"

// OLMoE. Paper: arXiv:2409.02060; checked against transformers, modeling_olmoe.py.
// Differs from Llama: Q and K are RMS-normalised as whole rows; RoPE turns halves; experts by a softmax over all, not
// normalised.
func olmoe(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll})

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.rowNormedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, m.network(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
