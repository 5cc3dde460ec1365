package arch

import "github.com/sluice-ai/sluice/internal/ir"

// GLM-4 and Z1 of April 2025. Compared with llama.cpp.
// Differs from Llama: blocks are normalised before and after; gate and up are one matrix; RoPE turns a part of each
// head; Q, K and V may have biases. GLM-4.1 V has sections, as Qwen 2 VL.
func glm4(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.maybeSections(&s, neighbours)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		attended := s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention())
		x = b.Add(x, b.RMSNorm(attended, "post_attention_norm", s.eps))
		b.FFN()
		fed := s.fusedSwiGLU(b, b.RMSNorm(x, "ffn_norm", s.eps))
		x = b.Add(x, b.RMSNorm(fed, "post_ffw_norm", s.eps))
	}
	s.head(b, x)
}

// fusedSwiGLU is swiglu whose gate is the upper half of one matrix, and up the lower.
func (s *shape) fusedSwiGLU(b *ir.Builder, x ir.Value) ir.Value { return s.fusedGated(b, x, ir.SiLU) }

// fusedGated is gated whose gate is the upper half of one matrix, and up the lower.
func (s *shape) fusedGated(b *ir.Builder, x ir.Value, act ir.Act) ir.Value {
	both := b.Linear(x, "ffn_up", 2*s.ffn)
	return b.Linear(b.GLU(act, b.Slice(both, 0, s.ffn), b.Slice(both, s.ffn, s.ffn)), "ffn_down", s.width)
}
