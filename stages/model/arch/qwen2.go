package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 2 and 2.5, dense. Paper: arXiv:2407.10671; checked against transformers, modeling_qwen2.py.
// Differs from Llama: Q, K and V have biases; RoPE turns halves.
func qwen2(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	s.qwen2(b, p.rope(&s, halves, 10000))
}

// qwen2 records the layers and the head.
func (s *shape) qwen2(b *ir.Builder, r rope) {

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.biasedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}

// biasedAttend is selfAttend with biases of Q, K and V that must be there.
func (s *shape) biasedAttend(b *ir.Builder, x ir.Value, r rope, a ir.AttendArgs) ir.Value {
	q := r.turn(b, b.LinearBias(x, "attn_q", s.heads*s.kDim))
	k := r.turn(b, b.LinearBias(x, "attn_k", s.kvHeads*s.kDim))
	v := b.LinearBias(x, "attn_v", s.kvHeads*s.vDim)
	return b.Linear(b.Attend(q, k, v, a), "attn_output", s.width)
}
