package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Cohere's models with experts. Compared with llama.cpp.
// Differs from Command-R: the first layers are dense; experts by sigmoids; beside them a network that all rows share,
// and half of the sum of both goes on; norms are RMS norms where the file has their epsilon. Layers with a window have
// RoPE, and the dense ones. The last layers of a file may predict tokens further on: they are left out.
func cohere2MoE(p *params, b *ir.Builder) {
	eps, norm := "attention.layer_norm_epsilon", b.LayerNormNoBias
	if p.optional("attention.layer_norm_rms_epsilon") != 0 {
		eps, norm = "attention.layer_norm_rms_epsilon", b.RMSNorm
	}
	s := p.decoder(eps)
	s.layers -= p.nextLayers(&s, b)
	near := p.rope(&s, neighbours, 10000)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	lead, window, local := p.leadingDense(), p.window(), p.localBehind(s.layers, 4)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, r := s.attention(), near
		switch {
		case local(l):
			a.Window = window
		case l >= lead:
			r = rope{}
		}
		b.Layer(l)
		b.FFN() // also attention: a mix segment would have to carry two values
		n := norm(x, "attn_norm", s.eps)
		x = b.Add(x, s.selfAttend(b, n, r, a))
		f := m.behind(lead, l, &s, b, n)
		if l >= lead && m.shared > 0 {
			f = b.Scale(f, 0.5)
		}
		x = b.Add(x, f)
	}
	y := b.Head(norm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
	b.Logits(b.Scale(y, float32(p.positiveOr("logit_scale", 1))))
}

// localBehind is local for families of which the first layer of a period is global, where the file has no flags.
func (p *params) localBehind(layers, period int) func(layer int) bool {
	const name = "attention.sliding_window_pattern"
	if _, err := p.meta.Bools(p.key(name)); err == nil {
		return p.local(layers, period)
	}
	period = p.countOr(name, maxLayers, period)
	return func(l int) bool { return l%period != 0 }
}
