package arch

import "github.com/sluice-ai/sluice/internal/ir"

// GLM-4.5 and 4.6. Paper: arXiv:2508.06471; checked against transformers, modeling_glm4_moe.py.
// Differs from Qwen 3 with experts: Q, K and V have biases; the large models alone normalise heads; RoPE turns half of
// each head; the first layers are dense; experts by sigmoids, and a bias that only their choice sees; beside them a
// network that all rows share. The last layers of a file are heads that predict tokens further on. GLM-4.5 V has
// sections, as Qwen 2 VL.
func glm4moe(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.maybeSections(&s, halves)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	lead := p.leadingDense()

	x, layers := p.trunk(&s, b)
	for _, l := range layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q, k := b.LinearBias(n, "attn_q", s.heads*s.kDim), b.LinearBias(n, "attn_k", s.kvHeads*s.kDim)
		if b.Has("attn_q_norm.weight") {
			q, k = b.HeadNorm(q, "attn_q_norm", s.kDim, s.eps), b.HeadNorm(k, "attn_k_norm", s.kDim, s.eps)
		}
		v := b.LinearBias(n, "attn_v", s.kvHeads*s.vDim)
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "post_attention_norm", s.eps)
		if l < lead {
			x = b.Add(x, s.swiglu(b, n))
		} else {
			x = b.Add(x, m.besideShared(b, n))
		}
	}
	s.head(b, x)
}

// leadingDense is how many of the first layers of a mixture have no experts.
func (p *params) leadingDense() int {
	const name = "leading_dense_block_count"
	if !p.has(name) {
		return 0
	}
	return p.integer(name, 0, maxLayers)
}
