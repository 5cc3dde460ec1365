package arch

import "github.com/sluice-ai/sluice/internal/ir"

// BLOOM. Paper: arXiv:2211.05100; compared with llama.cpp.
// Differs from GPT-2: scores fall with the distance (ALiBi) instead of learned positions; the embedding is normalised.
func bloom(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	a := s.attention()
	a.Alibi = maxBias
	s.layerNormed(b, b.LayerNorm(b.Embed("token_embd", s.vocab, s.width), "token_embd_norm", s.eps), a, s.plainGELU)
}

// Jais 1. Paper: arXiv:2308.16149; compared with llama.cpp.
// Differs from BLOOM: the feed-forward network is gated; scores are scaled by the head size; nothing normalises the
// embedding.
func jais(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	a := s.attention()
	a.Scale, a.Alibi = 1/float32(s.kDim), float32(p.positiveOr("attention.max_alibi_bias", maxBias))
	s.layerNormed(b, b.Embed("token_embd", s.vocab, s.width), a, s.swiglu)
}

// MPT. Compared with llama.cpp.
// Differs from BLOOM: norms may lack a bias, and nothing normalises the embedding; Q, K and V may be clipped. Models
// that normalise Q and K, or that learned their positions, are refused.
func mpt(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	a := s.attention()
	a.Alibi = float32(p.positiveOr("attention.max_alibi_bias", maxBias))
	s.clip = p.clip()
	s.layerNormed(b, b.Embed("token_embd", s.vocab, s.width), a, s.plainGELU)
}

// layerNormed are the layers and the head of a model whose norms are LayerNorms, and whose Q, K and V are one matrix.
func (s *shape) layerNormed(b *ir.Builder, x ir.Value, a ir.AttendArgs, feed func(*ir.Builder, ir.Value) ir.Value) {
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, s.layerNorm(b, x, "attn_norm"))
		x = b.Add(x, b.Linear(b.Attend(q, k, v, a), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, feed(b, s.layerNorm(b, x, "ffn_norm")))
	}
	b.Head(s.layerNorm(b, b.Rows(x), "output_norm"), "output", "token_embd")
}

// layerNorm is a LayerNorm that has a bias if the file has one.
func (s *shape) layerNorm(b *ir.Builder, x ir.Value, name string) ir.Value {
	if b.Has(name + ".bias") {
		return b.LayerNorm(x, name, s.eps)
	}
	return b.LayerNormNoBias(x, name, s.eps)
}

// plainGELU is the feed-forward network of GPT-2.
func (s *shape) plainGELU(b *ir.Builder, x ir.Value) ir.Value { return s.ungated(b, x, ir.GELU) }
