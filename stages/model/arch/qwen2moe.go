package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 1.5 and 2 with experts. Paper: arXiv:2407.10671; checked against transformers, modeling_qwen2_moe.py.
// Differs from Qwen 2: experts by a softmax over all, not normalised, and beside them a network that all rows share,
// times a sigmoid gate of one feature.
func qwen2moe(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll})
	ffn := p.countOr("expert_shared_feed_forward_length", maxFFN, s.ffn)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.biasedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		n := b.RMSNorm(x, "ffn_norm", s.eps)
		g := b.SwiGLU(b.Linear(n, "ffn_gate_shexp", ffn), b.Linear(n, "ffn_up_shexp", ffn))
		open := b.Act(ir.Sigmoid, b.Linear(n, "ffn_gate_inp_shexp", 1))
		shared := b.Mul(b.Linear(g, "ffn_down_shexp", s.width), open)
		x = b.Add(x, b.Add(m.network(b, n), shared))
	}
	s.head(b, x)
}
