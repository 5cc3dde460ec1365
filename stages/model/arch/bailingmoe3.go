package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Ling 3. Compared with llama.cpp.
// Differs from Kimi Linear: latent attention has RoPE, and a sigmoid gate of one feature a head; decays of Kimi Delta
// Attention have a bound, and come by one matrix, as its gate does. The last layer of a file may be a head that
// predicts tokens further on, and attends.
func bailingMoE3(p *params, b *ir.Builder) {
	s, attends := p.hybrid("attention.layer_norm_rms_epsilon")
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	l := p.latent(&s)
	l.gates = s.heads
	lead, d := p.leadingDense(), p.kimiDelta(&s)
	d.bounded(p)

	x, layers := p.trunk(&s, b)
	for _, i := range layers {
		b.Layer(i)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		if attends(i) || p.options.Head {
			x = b.Add(x, l.attend(&s, b, n))
		} else {
			x = b.Add(x, d.attend(&s, b, n))
		}
		b.FFN()
		x = b.Add(x, m.behind(lead, i, &s, b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
