package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Maple. Compared with llama.cpp.
// Differs from Qwen 3 mixtures: what goes into the experts' SiLU is limited, and what it multiplies; the file says
// which layers have a window, and RoPE is on those alone.
func maple(p *params, b *ir.Builder) {
	const usual = 7 // files of before the key
	s := p.mixed("attention.layer_norm_rms_epsilon")
	near := p.swaRope(&s, p.rope(&s, halves, 10000))
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	m.act = ir.ClippedSiLU
	window, local := p.window(), p.local(s.layers, 1)
	limits := p.limits("swiglu_clamp_exp", s.layers)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, r := s.attention(), rope{}
		if local(l) {
			a.Window, r = window, near
		}
		if m.limit = limits[l]; !p.has("swiglu_clamp_exp") {
			m.limit = usual
		}
		b.Layer(l)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, m.network(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
