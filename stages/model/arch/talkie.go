package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Talkie. Compared with llama.cpp.
// Differs from Llama: norms have no weights; heads of Q and K are normalised behind RoPE, those of Q with one factor
// for each head; every layer adds the normalised embedding again, times a factor of its own.
func talkie(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	scale := float32(p.positiveOr("logit_scale", 1))

	first := b.BareHeadNorm(b.Embed("token_embd", s.vocab, s.width), s.width, s.eps)
	x := first
	for l := range s.layers {
		b.Layer(l)
		b.FFN() // also attention: a mix segment would have to carry two values
		n := b.BareHeadNorm(x, s.width, s.eps)
		q, k := r.turn(b, b.Linear(n, "attn_q", s.heads*s.kDim)), r.turn(b, b.Linear(n, "attn_k", s.kvHeads*s.kDim))
		q, k = b.BareHeadNorm(q, s.kDim, s.eps), b.BareHeadNorm(k, s.kDim, s.eps)
		none := b.Scale(b.HeadSlice(q, s.heads, 0, 1), 0)
		q = b.Mul(q, b.AffineTable(none, "", "attn_q_norm.weight", s.heads))
		o := b.Attend(q, k, b.Linear(n, "attn_v", s.kvHeads*s.vDim), s.attention())
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		x = b.Add(x, s.swiglu(b, b.BareHeadNorm(x, s.width, s.eps)))
		x = b.Add(x, b.Affine(first, "layer_output_scale.weight", 1, "", 0))
	}
	n := b.BareHeadNorm(b.Rows(x), s.width, s.eps)
	b.Logits(b.Scale(b.Head(n, "output", "token_embd"), scale))
}
