package arch

import "github.com/sluice-ai/sluice/internal/ir"

// DeepSeek 1 with experts, DeepSeek OCR's text (deepseek2-ocr), and Ling 1 (bailingmoe). Papers: arXiv:2401.06066,
// arXiv:2503.05139; compared with llama.cpp.
// Differs from Llama: the first layers are dense; experts by a softmax over all, normalised where the file says so;
// beside them a network that all rows share. RoPE of DeepSeek OCR turns halves; its models whose answers see the
// prompt and a window are refused.
func deepseek(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, pairing(p.arch != "deepseek2-ocr"), 10000)
	if p.arch == "deepseek2-ocr" && p.window() > 0 {
		p.faultf("%s: is %d, and windows of answers alone are not supported", p.key("attention.sliding_window"), p.window())
	}
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll})
	lead := p.leadingDense()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		x = b.Add(x, m.behind(lead, l, &s, b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}

// behind is the feed-forward network of layer l of a mixture whose first layers are dense.
func (m *mixture) behind(lead, l int, s *shape, b *ir.Builder, x ir.Value) ir.Value {
	if l < lead {
		return s.swiglu(b, x)
	}
	return m.besideShared(b, x)
}
