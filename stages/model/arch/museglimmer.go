package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Muse Glimmer. Compared with llama.cpp.
// Differs from Qwen 3: embeddings are normalised, without weights; what heads attended to is multiplied by a sigmoid
// gate of the same width; blocks are normalised before and after, after by an epsilon that files do not carry; a
// window on all but every fourth layer, and RoPE on those alone; logits are multiplied by a constant, and may be
// capped.
func museGlimmer(p *params, b *ir.Builder) {
	const after = 1e-8
	s := p.dense("attention.layer_norm_rms_epsilon")
	near := p.swaRope(&s, p.rope(&s, neighbours, 10000))
	window, local := p.window(), p.local(s.layers, 4)
	scale, final := float32(p.positive("logit_scale")), float32(p.optional("final_logit_softcapping"))

	x := b.BareHeadNorm(b.Embed("token_embd", s.vocab, s.width), s.width, s.eps)
	for l := range s.layers {
		a, r := s.attention(), rope{}
		if local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		o := s.openAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a)
		x = b.Add(x, b.RMSNorm(b.Linear(o, "attn_output", s.width), "post_attention_norm", after))
		b.FFN()
		x = b.Add(x, b.RMSNorm(s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)), "post_ffw_norm", after))
	}
	b.Logits(b.SoftCap(b.Scale(s.head(b, x), scale), final))
}
