package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 3.5 with experts. Checked against transformers, modeling_qwen3_5_moe.py.
// Differs from Qwen 3.5: experts as Qwen 3 Next has them.
func qwen35moe(p *params, b *ir.Builder) {
	s := p.mixed("attention.layer_norm_rms_epsilon")
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	shared := p.countOr("expert_shared_feed_forward_length", maxFFN, m.ffn)
	p.deltaNets(b, &s, true, func(b *ir.Builder, x ir.Value) ir.Value { return m.besideGated(b, x, shared) })
}
