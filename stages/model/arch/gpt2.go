package arch

import "github.com/sluice-ai/sluice/internal/ir"

// GPT-2. Radford et al. 2019; compared with llama.cpp.
// Differs from Llama: learned positions are added to the embedding, and nothing rotates; LayerNorm and biases
// everywhere; Q, K and V are one matrix; a feed-forward network without gate, GELU.
func gpt2(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	q, kv := s.heads*s.kDim, s.kvHeads*s.kDim

	x := b.Position(b.Embed("token_embd", s.vocab, s.width), "position_embd", p.context)
	for l := range s.layers {
		b.Layer(l)
		qkv := b.LinearBias(b.LayerNorm(x, "attn_norm", s.eps), "attn_qkv", q+2*kv)
		o := b.Attend(b.Slice(qkv, 0, q), b.Slice(qkv, q, kv), b.Slice(qkv, q+kv, kv), s.attention())
		x = b.Add(x, b.LinearBias(o, "attn_output", s.width))
		b.FFN()
		up := b.LinearBias(b.LayerNorm(x, "ffn_norm", s.eps), "ffn_up", s.ffn)
		x = b.Add(x, b.LinearBias(b.Act(ir.GELU, up), "ffn_down", s.width))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
