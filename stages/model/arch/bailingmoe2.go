package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Ling 2 and Ring 2. Report: arXiv:2510.22115; compared with llama.cpp.
// Differs from dots.llm1: Q, K and V are one matrix; RoPE turns a part of each head; files give the size of one shared
// network, and their number.
func bailingMoE2(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	if p.has("expert_shared_feed_forward_length") {
		m.shared *= p.countOr("expert_shared_count", maxExperts, 1)
	}
	lead := p.leadingDense()

	x, layers := p.trunk(&s, b)
	for _, l := range layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		q = r.turn(b, b.HeadNorm(q, "attn_q_norm", s.kDim, s.eps))
		k = r.turn(b, b.HeadNorm(k, "attn_k_norm", s.kDim, s.eps))
		x = b.Add(x, b.Linear(b.Attend(q, k, v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, m.behind(lead, l, &s, b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
