package arch

import "github.com/sluice-ai/sluice/internal/ir"

// MiniMax M2. After transformers, modeling_minimax_m2.py; compared with llama.cpp.
// Differs from OLMoE: RoPE turns halves of a part of each head; experts by sigmoids, normalised, and a bias that only
// their choice sees.
func minimaxM2(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach, Normalise: true})

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.rowNormedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, m.network(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
