package arch

import "github.com/sluice-ai/sluice/internal/ir"

// ChatGLM 2 and 3, GLM-4 of June 2024. Paper: arXiv:2406.12793; compared with llama.cpp.
// Differs from Llama: Q, K and V are one matrix with biases, gate and up another; RoPE turns half of each head.
func chatGLM(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.fusedSwiGLU(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
