package arch

import "github.com/sluice-ai/sluice/internal/ir"

// StarCoder 2. Paper: arXiv:2402.19173; checked against transformers, modeling_starcoder2.py.
// Differs from Llama: LayerNorm with bias, biases on all matrices, a feed-forward network without gate, GELU;
// RoPE turns halves. The larger models have a sliding window, where the file says so.
func starcoder2(p *params, b *ir.Builder) { starcoderBy(p, b, ir.GELU) }

// starcoderBy is starcoder2 for families that differ by the activation.
func starcoderBy(p *params, b *ir.Builder, act ir.Act) {
	s := p.dense("attention.layer_norm_epsilon")
	r := p.rope(&s, halves, 10000)
	a := s.attention()
	a.Window = p.window()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.LayerNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, s.ungated(b, b.LayerNorm(x, "ffn_norm", s.eps), act))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}
