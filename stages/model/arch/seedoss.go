package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Seed-OSS. Checked against transformers, modeling_seed_oss.py.
// Differs from Llama: Q, K and V have biases; RoPE turns halves; the norm before the feed-forward network is called
// post_attention_norm in files.
func seedOSS(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.biasedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "post_attention_norm", s.eps)))
	}
	s.head(b, x)
}
