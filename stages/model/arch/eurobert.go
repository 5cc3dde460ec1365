package arch

import "github.com/sluice-ai/sluice/internal/ir"

// EuroBERT. Paper: arXiv:2503.05500; compared with llama.cpp.
// Differs from Llama: rows see those after them; RoPE turns halves; the end is a vector for each row.
func euroBERT(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	a := s.attention()
	a.Both = true
	if p.pooling() == ir.PoolRank {
		p.faultf("%s: is %d, and rerankers of this architecture are not supported", p.key("pooling_type"), ir.PoolRank)
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	b.Vectors(b.RMSNorm(b.Pool(x), "output_norm", s.eps))
	b.Pooling(p.pooling())
	b.Ignore("output.weight")
}
