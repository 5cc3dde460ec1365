package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Qwen 1. Paper: arXiv:2309.16609; compared with llama.cpp.
// Differs from Qwen 2: Q, K and V are one matrix; the networks have half of the features that files say, which counts
// gate and up together.
func qwen(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	if s.ffn%2 != 0 {
		p.faultf("%s: is %d, want an even number", p.key("feed_forward_length"), s.ffn)
		s.ffn++
	}
	s.ffn /= 2
	r := p.rope(&s, halves, 10000)
	width := s.heads * s.kDim

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		qkv := b.LinearBias(b.RMSNorm(x, "attn_norm", s.eps), "attn_qkv", 3*width)
		q, k, v := b.Slice(qkv, 0, width), b.Slice(qkv, width, width), b.Slice(qkv, 2*width, width)
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
