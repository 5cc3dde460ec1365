package arch

import "github.com/sluice-ai/sluice/internal/ir"

// EXAONE 4. Paper: arXiv:2507.11407; compared with llama.cpp.
// Differs from Qwen 3: blocks are normalised after, not before. The large model has a window on all but every fourth
// layer, and RoPE on those alone.
func exaone4(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	near := p.rope(&s, halves, 10000)
	if b.Has("rope_freqs.weight") {
		near.factors = "rope_freqs.weight"
	}
	window, local := p.window(), p.local(s.layers, 4)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, r := s.attention(), near
		switch {
		case window > 0 && local(l):
			a.Window = window
		case window > 0:
			r = rope{}
		}
		b.Layer(l)
		x = b.Add(x, b.RMSNorm(s.normedAttend(b, x, r, a), "post_attention_norm", s.eps))
		b.FFN()
		x = b.Add(x, b.RMSNorm(s.swiglu(b, x), "post_ffw_norm", s.eps))
	}
	s.head(b, x)
}
