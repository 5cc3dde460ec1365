package arch

import "github.com/sluice-ai/sluice/internal/ir"

// SmallThinker. Paper: arXiv:2507.20984; compared with llama.cpp.
// Differs from Qwen 3 mixtures: the router sees what the layer begins with, before attention; experts are gated by
// ReLU. Of four layers the first sees all positions, and has no RoPE; where the file has no window, all do and have.
func smallThinker(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	m.act = ir.ReLU
	window, local := p.window(), p.localBehind(s.layers, 4)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, turn := s.attention(), r
		if window > 0 && local(l) {
			a.Window = window
		} else if window > 0 {
			turn = rope{}
		}
		b.Layer(l)
		b.FFN() // also attention: a mix segment would have to carry two values
		weights := b.Route(b.Linear(x, "ffn_gate_inp", m.experts), "", m.route)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), turn, a))
		n := b.RMSNorm(x, "ffn_norm", s.eps)
		x = b.Add(x, b.Experts(n, weights, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", m.ffn, m.route.Used, m.act))
	}
	s.head(b, x)
}
