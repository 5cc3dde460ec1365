package arch

import "github.com/sluice-ai/sluice/internal/ir"

// OLMo 2 and 3. Paper: arXiv:2501.00656; checked against transformers, modeling_olmo2.py and modeling_olmo3.py.
// Differs from Llama: blocks are normalised after, not before; Q and K are RMS-normalised as whole rows; RoPE
// turns halves. OLMo 3 has a window on all but every fourth layer, and scales RoPE on those without one only.
func olmo2(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	near := p.plainRope(&s, halves, 10000)
	global := p.scaled(near)
	window, local := p.window(), p.local(s.layers, 4)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, r := s.attention(), global
		if window > 0 && local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		x = b.Add(x, b.RMSNorm(s.rowNormedAttend(b, x, r, a), "post_attention_norm", s.eps))
		b.FFN()
		x = b.Add(x, b.RMSNorm(s.swiglu(b, x), "post_ffw_norm", s.eps))
	}
	s.head(b, x)
}

// rowNormedAttend is selfAttend with an RMS norm of whole rows of Q and K before RoPE.
func (s *shape) rowNormedAttend(b *ir.Builder, x ir.Value, r rope, a ir.AttendArgs) ir.Value {
	q := b.RMSNorm(b.Linear(x, "attn_q", s.heads*s.kDim), "attn_q_norm", s.eps)
	k := b.RMSNorm(b.Linear(x, "attn_k", s.kvHeads*s.kDim), "attn_k_norm", s.eps)
	v := b.Linear(x, "attn_v", s.kvHeads*s.vDim)
	return b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, a), "attn_output", s.width)
}
