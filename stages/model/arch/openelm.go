package arch

import "github.com/sluice-ai/sluice/internal/ir"

// OpenELM. Paper: arXiv:2404.14619; compared with llama.cpp.
// Differs from Qwen 3: Q, K and V are one matrix; layers have numbers of heads and features of their own.
func openELM(p *params, b *ir.Builder) {
	p.context = p.count("context_length", maxContext)
	s := shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		eps:    float32(p.positive("attention.layer_norm_rms_epsilon")),
		kDim:   p.count("attention.key_length", maxHeadDim),
	}
	s.vDim = p.countOr("attention.value_length", maxHeadDim, s.kDim)
	heads := p.byLayer("attention.head_count", s.layers, maxHeads)
	kv, ffn := p.byLayer("attention.head_count_kv", s.layers, maxHeads), p.byLayer("feed_forward_length", s.layers, maxFFN)
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		s.heads, s.kvHeads, s.ffn = heads[l], kv[l], ffn[l]
		if s.heads%s.kvHeads != 0 {
			p.faultf("%s: is %d for layer %d, want a divisor of %d", p.key("attention.head_count_kv"), s.kvHeads, l, s.heads)
			s.kvHeads = s.heads
		}
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		q, k = b.HeadNorm(q, "attn_q_norm", s.kDim, s.eps), b.HeadNorm(k, "attn_k_norm", s.kDim, s.eps)
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
