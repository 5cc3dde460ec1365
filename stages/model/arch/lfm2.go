package arch

import "github.com/sluice-ai/sluice/internal/ir"

// LFM2, dense or with experts (lfm2moe). Report: arXiv:2511.23404; LFM2 was checked against transformers,
// modeling_lfm2.py, lfm2moe compared with llama.cpp.
// Differs from Qwen 3: most layers mix positions by a short convolution between two gates instead of attention; the
// last norm is called that of the embedding. Experts, of all but the first layers, are chosen by sigmoids, normalised,
// and a bias that only the choice sees.
func lfm2(p *params, b *ir.Builder) {
	s, attends := p.hybrid("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	kernel := p.integer("shortconv.l_cache", 2, maxHeadDim)
	var m mixture
	lead := s.layers
	if p.hasExperts() {
		m, lead = p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach, Normalise: true}), p.leadingDense()
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		if attends(l) {
			x = b.Add(x, s.normedAttend(b, n, r, s.attention()))
		} else {
			x = b.Add(x, s.shortConv(b, n, kernel))
		}
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", s.eps)
		if l < lead {
			x = b.Add(x, s.swiglu(b, n))
		} else {
			x = b.Add(x, m.besideShared(b, n))
		}
	}
	norm := "token_embd_norm"
	if b.Has("output_norm.weight") {
		norm = "output_norm"
	}
	b.Head(b.RMSNorm(b.Rows(x), norm, s.eps), "output", "token_embd")
}

// shortConv is a convolution of what one gate lets in; another says what of it goes out.
func (s *shape) shortConv(b *ir.Builder, x ir.Value, kernel int) ir.Value {
	all := b.Linear(x, "shortconv.in_proj", 3*s.width)
	in, out, v := b.Slice(all, 0, s.width), b.Slice(all, s.width, s.width), b.Slice(all, 2*s.width, s.width)
	mixed := b.CausalConv(b.Mul(v, in), "shortconv.conv", kernel)
	return b.Linear(b.Mul(mixed, out), "shortconv.out_proj", s.width)
}
