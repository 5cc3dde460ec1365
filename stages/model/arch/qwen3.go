package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 3, dense. Paper: arXiv:2505.09388; checked against transformers, modeling_qwen3.py.
// Differs from Llama: every head of Q and K is RMS-normalised before RoPE, which turns halves.
func qwen3(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	p.qwen3(b, &s, p.rope(&s, halves, 10000))
}

// qwen3 records the layers and the end.
func (p *params) qwen3(b *ir.Builder, s *shape, r rope) {
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	if p.pooling() != ir.PoolNone { // Qwen 3 Embedding, whose last row is the text's vector
		b.Vectors(b.RMSNorm(b.Pool(x), "output_norm", s.eps))
		b.Pooling(p.pooling())
		b.Ignore("output.weight")
		return
	}
	s.head(b, x)
}

// normedAttend is selfAttend with an RMS norm of each head of Q and K before RoPE.
func (s *shape) normedAttend(b *ir.Builder, x ir.Value, r rope, a ir.AttendArgs) ir.Value {
	q := b.HeadNorm(b.Linear(x, "attn_q", s.heads*s.kDim), "attn_q_norm", s.kDim, s.eps)
	k := b.HeadNorm(b.Linear(x, "attn_k", s.kvHeads*s.kDim), "attn_k_norm", s.kDim, s.eps)
	v := b.Linear(x, "attn_v", s.kvHeads*s.vDim)
	return b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, a), "attn_output", s.width)
}
