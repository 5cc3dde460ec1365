package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Mellum 2. Compared with llama.cpp.
// Differs from Qwen 3 with experts: most layers have a window, and leave the scaling of RoPE out.
func mellum(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	near := p.plainRope(&s, halves, 10000)
	global := p.scaled(near)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	window, local := p.window(), p.local(s.layers, 4)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, r := s.attention(), global
		if window > 0 && local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, m.network(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
