package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 2 and 2.5, dense. Paper: arXiv:2407.10671; checked against transformers, modeling_qwen2.py.
// Differs from Llama: Q, K and V have biases; RoPE turns halves.
func qwen2(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := r.turn(b, b.LinearBias(n, "attn_q", s.heads*s.kDim))
		k := r.turn(b, b.LinearBias(n, "attn_k", s.kvHeads*s.kDim))
		v := b.LinearBias(n, "attn_v", s.kvHeads*s.vDim)
		x = b.Add(x, b.Linear(b.Attend(q, k, v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
