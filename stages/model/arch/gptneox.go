package arch

import "github.com/sluice-ai/sluice/internal/ir"

// GPT-NeoX and Pythia. Paper: arXiv:2204.06745; compared with llama.cpp.
// Differs from Llama: LayerNorm and biases everywhere; Q, K and V are one matrix; a feed-forward network without
// gate, GELU; RoPE turns halves of a part of each head. Most models feed both blocks from the same residual stream:
// their layers are one segment.
func gptNeoX(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)
	parallel := p.flag("use_parallel_residual")
	q, kv := s.heads*s.kDim, s.kvHeads*s.kDim

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		qkv := b.LinearBias(b.LayerNorm(x, "attn_norm", s.eps), "attn_qkv", q+2*kv)
		o := b.Attend(r.turn(b, b.Slice(qkv, 0, q)), r.turn(b, b.Slice(qkv, q, kv)), b.Slice(qkv, q+kv, kv), s.attention())
		attended := b.LinearBias(o, "attn_output", s.width)
		if !parallel {
			x = b.Add(x, attended)
			b.FFN()
		}
		up := b.LinearBias(b.LayerNorm(x, "ffn_norm", s.eps), "ffn_up", s.ffn)
		fed := b.LinearBias(b.Act(ir.GELU, up), "ffn_down", s.width)
		if parallel {
			fed = b.Add(attended, fed)
		}
		x = b.Add(x, fed)
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
