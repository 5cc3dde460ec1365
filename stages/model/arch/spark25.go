package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Spark 2.5. Compared with llama.cpp.
// Differs from Llama: what each head attended to is multiplied by a sigmoid gate of one feature; the file says which
// layers have a window, and heads and a base of RoPE of their own; the network is gated by GELU.
func spark25(p *params, b *ir.Builder) {
	s, heads := p.ownHeads("attention.layer_norm_rms_epsilon")
	s.ffn = p.count("feed_forward_length", maxFFN)
	far := p.rope(&s, halves, 10000)
	near := p.swaRope(&s, far)
	window, local := p.window(), p.local(s.layers, 1)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		heads(&s, l)
		a, r := s.attention(), far
		if local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		x = b.Add(x, s.headGated(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, s.gated(b, b.RMSNorm(x, "ffn_norm", s.eps), ir.GELU))
	}
	s.head(b, x)
}
