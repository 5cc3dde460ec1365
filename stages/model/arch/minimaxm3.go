package arch

import "github.com/sluice-ai/sluice/internal/ir"

// MiniMax M3. Compared with llama.cpp.
// Differs from dots.llm1: networks are gpt-oss', with clamped gates; RoPE turns a part of each head; an indexer chooses
// blocks of positions that rows of all but the first layers see: see within.
func minimaxM3(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	m.act = ir.Clamped
	lead := p.leadingDense()
	p.within(b, s.layers, p.count("attention.indexer.block_size", maxContext>>8))

	x, layers := p.trunk(&s, b)
	if p.options.Head {
		p.faultf("%s: heads of MiniMax M3 are not supported", p.key(nextKey)) // nobody has described one
	}
	for _, l := range layers {
		b.Layer(l)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		if n := b.RMSNorm(x, "ffn_norm", s.eps); l < lead {
			x = b.Add(x, s.gated(b, n, ir.Clamped))
		} else {
			x = b.Add(x, m.besideShared(b, n))
		}
	}
	s.head(b, x)
}
