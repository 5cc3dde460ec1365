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
		o := s.openAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a)
		x = b.Add(x, b.RMSNorm(b.Linear(o, "attn_output", s.width), "post_attention_norm", s.eps))
		b.FFN()
		f := m.behind(lead, l, &s, b, b.RMSNorm(x, "ffn_norm", s.eps))
		x = b.Add(x, b.RMSNorm(f, "post_ffw_norm", s.eps))
	}
	s.head(b, x)
}

// openAttend is attention with every head of Q and K normalised, times a sigmoid gate of the same width: what the
// output matrix multiplies.
func (s *shape) openAttend(b *ir.Builder, x ir.Value, r rope, a ir.AttendArgs) ir.Value {
	q := b.HeadNorm(b.Linear(x, "attn_q", s.heads*s.kDim), "attn_q_norm", s.kDim, s.eps)
	k := b.HeadNorm(b.Linear(x, "attn_k", s.kvHeads*s.kDim), "attn_k_norm", s.kDim, s.eps)
	v, gate := b.Linear(x, "attn_v", s.kvHeads*s.vDim), b.Linear(x, "attn_gate", s.heads*s.vDim)
	return b.GLU(ir.Sigmoid, gate, b.Attend(r.turn(b, q), r.turn(b, k), v, a))
}
