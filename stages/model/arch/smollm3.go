package arch

import "github.com/sluice-ai/sluice/internal/ir"

// SmolLM 3. Checked against transformers, modeling_smollm3.py.
// Differs from Llama: every fourth layer has no RoPE (arXiv:2501.18795).
func smollm3(p *params, b *ir.Builder) {
	const period = 4 // files do not carry it
	s := p.dense("attention.layer_norm_rms_epsilon")
	turning, still := p.rope(&s, neighbours, 10000), rope{}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		r := turning
		if (l+1)%period == 0 {
			r = still
		}
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
