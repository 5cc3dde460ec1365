package arch

import "github.com/sluice-ai/sluice/internal/ir"

// dots.llm1, K-EXAONE (exaone-moe) and Hunyuan 3 (hy_v3). Paper: arXiv:2506.05767; compared with llama.cpp.
// Differs from Qwen 3 with experts: the first layers are dense; experts by sigmoids, and a bias that only their choice
// sees; beside them a network that all rows share. K-EXAONE has a window on all but every fourth layer, and RoPE on
// those alone. The last layers of a file may be heads that predict tokens further on.
func dots1(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	near := p.rope(&s, halves, 10000)
	if b.Has("rope_freqs.weight") {
		near.factors = "rope_freqs.weight"
	}
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	m.bareBias = p.arch == "hy_v3"                                   // converters leave the name's ending out
	if m.shared == 0 && p.has("expert_shared_feed_forward_length") { // of Hunyuan 3, whose files count no networks
		m.shared = p.count("expert_shared_feed_forward_length", maxFFN)
	}
	x, layers := p.trunk(&s, b)
	lead, window, local := p.leadingDense(), p.window(), p.local(s.layers, 4)
	if window > 0 && p.options.Head {
		p.faultf("%s: heads of models with windows are not supported", p.key(nextKey))
		return
	}
	for _, l := range layers {
		a, r := s.attention(), near
		switch {
		case window > 0 && local(l):
			a.Window = window
		case window > 0:
			r = rope{}
		}
		b.Layer(l)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, m.behind(lead, l, &s, b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
