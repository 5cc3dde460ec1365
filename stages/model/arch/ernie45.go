package arch

import "github.com/sluice-ai/sluice/internal/ir"

// ERNIE 4.5, and PaddleOCR-VL's text (paddleocr). The dense models were checked against transformers,
// modeling_ernie4_5.py, those with experts compared with llama.cpp.
// Differs from Llama: in mixtures, the first layers are dense, and then those that the file's step leaves out; experts
// by a softmax over all and a bias that only the choice sees, normalised; beside them a network that all rows share.
// PaddleOCR's RoPE has sections of halves, as Qwen 2 VL's.
func ernie45(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, pairing(p.arch != "paddleocr"), 10000)
	if p.arch == "paddleocr" {
		r = p.sections(r, oneAfterAnother)
	}
	var m mixture
	dense := func(int) bool { return true }
	if p.hasExperts() {
		m = p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
		lead, step := p.leadingDense(), p.countOr("interleave_moe_layer_step", maxLayers, 1)
		dense = func(l int) bool { return l < lead || (l+1)%step != 0 }
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		n := b.RMSNorm(x, "ffn_norm", s.eps)
		if dense(l) {
			x = b.Add(x, s.swiglu(b, n))
		} else {
			x = b.Add(x, m.besideShared(b, n))
		}
	}
	s.head(b, x)
}
