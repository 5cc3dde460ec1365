package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Gemma 2. Paper: arXiv:2408.00118; checked against transformers, modeling_gemma2.py.
// Differs from Llama: norms before and after each block (their weights in files include the 1 that Gemma adds);
// embeddings times √width; GELU; soft caps on scores and logits; a window on every other layer, the
// first included; RoPE turns halves.
func gemma2(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	local, window := p.local(s.layers, 2), p.window()
	a := s.attention()
	a.SoftCap = float32(p.optional("attn_logit_softcapping"))
	if s.layers == 46 { // the 27B model, whose scale no key carries
		a.Scale = s.perHeadScale()
	}
	final := float32(p.optional("final_logit_softcapping"))

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), s.embeddingScale())
	for l := range s.layers {
		a.Window = 0
		if local(l) {
			a.Window = window
		}
		b.Layer(l)
		o := s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a)
		x = s.gemmaBlocks(b, x, o)
	}
	b.Logits(b.SoftCap(s.head(b, x), final))
}

// gemmaBlocks adds the attention block's output to the residual stream and goes on with the layer's
// feed-forward network, each normalised before it is added.
func (s *shape) gemmaBlocks(b *ir.Builder, x, attended ir.Value) ir.Value {
	x = b.Add(x, b.RMSNorm(attended, "post_attention_norm", s.eps))
	b.FFN()
	f := s.gated(b, b.RMSNorm(x, "ffn_norm", s.eps), ir.GELU)
	return b.Add(x, b.RMSNorm(f, "post_ffw_norm", s.eps))
}

// embeddingScale is √width: Gemma's embeddings are tied to an output matrix of unit rows.
func (s *shape) embeddingScale() float32 { return float32(math.Sqrt(float64(s.width))) }

// perHeadScale is the scale of the models whose query_pre_attn_scalar is width/heads instead of the head size.
func (s *shape) perHeadScale() float32 {
	return float32(1 / math.Sqrt(float64(s.width)/float64(s.heads)))
}
