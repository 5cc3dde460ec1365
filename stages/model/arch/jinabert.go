package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Jina BERT 2. Paper: arXiv:2310.19923; compared with llama.cpp.
// Differs from BERT: scores fall with the distance (ALiBi) instead of learned positions; the feed-forward network is
// gated, by a matrix of its own or by the upper half of one. The model for code normalises Q and K, and once more what
// attention adds to.
func jinaBERT(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	a := s.attention()
	a.Both, a.Alibi = true, maxBias
	if p.pooling() == ir.PoolRank {
		p.faultf("%s: is %d, and rerankers of this architecture are not supported", p.key("pooling_type"), ir.PoolRank)
	}

	x := p.typed(b, b.Embed("token_embd", s.vocab, s.width))
	x = b.LayerNorm(x, "token_embd_norm", s.eps)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, x)
		if b.Has("attn_q_norm.weight") {
			q, k = s.layerNorm(b, q, "attn_q_norm"), s.layerNorm(b, k, "attn_k_norm")
		}
		o := b.Linear(b.Attend(q, k, v, a), "attn_output", s.width)
		n := b.LayerNorm(b.Add(o, x), "attn_output_norm", s.eps)
		if b.Has("attn_norm_2.weight") {
			n = b.LayerNorm(b.Add(n, x), "attn_norm_2", s.eps)
		}
		b.FFN()
		var fed ir.Value
		if b.Has("ffn_gate.weight") {
			fed = s.gated(b, n, ir.GELUErf)
		} else {
			fed = s.fusedGated(b, n, ir.GELUErf)
		}
		x = b.LayerNorm(b.Add(n, fed), "layer_output_norm", s.eps)
	}
	b.Vectors(b.Pool(x))
	b.Pooling(p.pooling())
	b.Ignore("cls.", "pooler.")
}
