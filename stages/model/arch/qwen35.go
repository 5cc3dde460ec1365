package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 3.5, dense. Checked against transformers, modeling_qwen3_5.py.
// Differs from Qwen 3 Next: a dense feed-forward network; heads of the delta networks lie tiled. RoPE has sections for
// pictures, which a text's positions are the same in.
func qwen35(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	p.deltaNets(b, &s, true, s.swiglu)
}
