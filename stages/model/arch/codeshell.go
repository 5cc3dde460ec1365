package arch

import "github.com/sluice-ai/sluice/internal/ir"

// CodeShell. Paper: arXiv:2403.15747; compared with llama.cpp.
// Differs from GPT-2: RoPE, which turns halves, instead of learned positions; fewer heads of K and V. Files may have
// one table for embedding and output, under the name of the output.
func codeShell(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)
	table := "token_embd"
	if !b.Has(table+".weight") && b.Has("output.weight") {
		table = "output"
	}

	x := b.Embed(table, s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.LayerNorm(x, "attn_norm", s.eps))
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.ungated(b, b.LayerNorm(x, "ffn_norm", s.eps), ir.GELU))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", table)
}
