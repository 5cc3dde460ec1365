package arch

import "github.com/sluice-ai/sluice/internal/ir"

// LFM2, dense. Report: arXiv:2511.23404; checked against transformers, modeling_lfm2.py.
// Differs from Qwen 3: most layers mix positions by a short convolution between two gates instead of attention; the
// last norm is called that of the embedding.
func lfm2(p *params, b *ir.Builder) {
	s, attends := p.hybrid("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	kernel := p.integer("shortconv.l_cache", 2, maxHeadDim)

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
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
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
