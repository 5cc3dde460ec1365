package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Gemma 3, text. Paper: arXiv:2503.19786; checked against transformers, modeling_gemma3.py.
// Differs from Gemma 2: every head of Q and K is RMS-normalised; no cap on scores; five local layers to a global
// one. Local layers have a RoPE base of their own, and only global ones scale RoPE.
func gemma3(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	global := p.rope(&s, halves, 1e6)
	near := s.newRope(halves, global.args.Dims, p.positiveOr("rope.freq_base_swa", 10000))
	local, window := p.local(s.layers, 6), p.window()
	a := s.attention()
	if s.layers == 62 { // the 27B model, whose scale no key carries
		a.Scale = s.perHeadScale()
	}
	final := float32(p.optional("final_logit_softcapping"))

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), s.embeddingScale())
	for l := range s.layers {
		r := global
		a.Window = 0
		if window > 0 && local(l) {
			r, a.Window = near, window
		}
		b.Layer(l)
		o := s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a)
		x = s.gemmaBlocks(b, x, o)
	}
	b.Logits(b.SoftCap(s.head(b, x), final))
}
