package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Llama 1 to 3, and what is converted as it: Mistral, SmolLM 1 and 2, and others.
// Papers: arXiv:2302.13971, arXiv:2407.21783; checked against transformers, modeling_llama.py.
// Llama 3.1's RoPE scaling is in the tensor rope_freqs. Mistral 7B v0.1 has a sliding window. Mixtral
// (arXiv:2401.04088, modeling_mixtral.py) has experts: a softmax over the chosen ones is that over all, normalised.
func llama(p *params, b *ir.Builder) { llamaBy(p, b, neighbours) }

// llamaBy is llama for families that differ by the pairs that RoPE turns.
func llamaBy(p *params, b *ir.Builder, pairs pairing) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	feed := p.feed(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	r := p.rope(&s, pairs, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	a := s.attention()
	a.Window = p.window()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, feed(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
