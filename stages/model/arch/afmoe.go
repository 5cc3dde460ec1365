package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Arcee's Trinity. Compared with llama.cpp.
// Differs from dots.llm1: embeddings times √width; what heads attended to is multiplied by a sigmoid gate of the same
// width; blocks are normalised before and after; a window on all but every fourth layer, and RoPE on those alone.
func afMoE(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	near := p.rope(&s, halves, 10000)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	lead, window, local := p.leadingDense(), p.window(), p.local(s.layers, 4)

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), s.embeddingScale())
	for l := range s.layers {
		a, r := s.attention(), rope{}
		if local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := b.HeadNorm(b.Linear(n, "attn_q", s.heads*s.kDim), "attn_q_norm", s.kDim, s.eps)
		k := b.HeadNorm(b.Linear(n, "attn_k", s.kvHeads*s.kDim), "attn_k_norm", s.kDim, s.eps)
		v, gate := b.Linear(n, "attn_v", s.kvHeads*s.vDim), b.Linear(n, "attn_gate", s.heads*s.vDim)
		o := b.GLU(ir.Sigmoid, gate, b.Attend(r.turn(b, q), r.turn(b, k), v, a))
		x = b.Add(x, b.RMSNorm(b.Linear(o, "attn_output", s.width), "post_attention_norm", s.eps))
		b.FFN()
		f := m.behind(lead, l, &s, b, b.RMSNorm(x, "ffn_norm", s.eps))
		x = b.Add(x, b.RMSNorm(f, "post_ffw_norm", s.eps))
	}
	s.head(b, x)
}
