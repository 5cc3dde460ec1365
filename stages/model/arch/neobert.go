package arch

import "github.com/sluice-ai/sluice/internal/ir"

// NeoBERT. Paper: arXiv:2502.19587; compared with llama.cpp.
// Differs from Llama: rows see those after them; Q, K and V are one matrix, and so are gate and what it multiplies; the
// end is a vector for each row.
func neoBERT(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)
	a := s.attention()
	a.Both = true

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, a), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.fusedSwiGLU(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	b.Vectors(b.RMSNorm(b.Pool(x), "enc.output_norm", s.eps))
	b.Pooling(p.pooling())
	b.Ignore("cls.")
}
