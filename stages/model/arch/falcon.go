package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Falcon 7B and 40B. Paper: arXiv:2311.16867; compared with llama.cpp.
// Differs from Phi 2: no matrix has a bias; Q, K and V are one matrix; the large models feed attention from a norm of
// its own.
func falcon(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.LayerNorm(x, "attn_norm", s.eps)
		attended := n
		if b.Has("attn_norm_2.weight") {
			attended = b.LayerNorm(x, "attn_norm_2", s.eps)
		}
		q, k, v := s.qkv(b, attended)
		o := b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width)
		x = b.Add(x, b.Add(o, s.ungated(b, n, ir.GELU)))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
