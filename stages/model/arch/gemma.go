package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Gemma. Paper: arXiv:2403.08295; after transformers, modeling_gemma.py.
// Differs from Llama: embeddings times √width; GELU; RoPE turns halves; norms' weights in files include the 1 that
// Gemma adds.
func gemma(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), s.embeddingScale())
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.gated(b, b.RMSNorm(x, "ffn_norm", s.eps), ir.GELU))
	}
	s.head(b, x)
}
