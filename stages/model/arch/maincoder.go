package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Maincoder. Compared with llama.cpp.
// Differs from Llama: every head of Q and K is RMS-normalised after RoPE.
func maincoder(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := b.HeadNorm(r.turn(b, b.Linear(n, "attn_q", s.heads*s.kDim)), "attn_q_norm", s.kDim, s.eps)
		k := b.HeadNorm(r.turn(b, b.Linear(n, "attn_k", s.kvHeads*s.kDim)), "attn_k_norm", s.kDim, s.eps)
		v := b.Linear(n, "attn_v", s.kvHeads*s.vDim)
		x = b.Add(x, b.Linear(b.Attend(q, k, v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
