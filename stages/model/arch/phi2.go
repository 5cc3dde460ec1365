package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Phi 1, 1.5 and 2. Papers: arXiv:2306.11644, arXiv:2309.05463; compared with llama.cpp.
// Differs from GPT-NeoX: one LayerNorm feeds attention and feed-forward network, whose outputs are added to the
// residual stream together; the output matrix has a bias, too. A layer is one segment: its halves share their input.
func phi2(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.LayerNorm(x, "attn_norm", s.eps)
		q, k, v := s.qkv(b, n)
		o := b.LinearBias(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width)
		x = b.Add(x, b.Add(o, s.ungated(b, n, ir.GELU)))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
