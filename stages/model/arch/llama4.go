package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Llama 4, text. Checked against transformers, modeling_llama4.py.
// Differs from Llama 3: layers attend within chunks of 8192 positions, and normalise heads after RoPE, without weights;
// every fourth sees all, has no RoPE, and sharpens its queries with the position. Some layers have experts, chosen by
// sigmoids, whose weights multiply what goes into them, and beside them a network that all rows share.
func llama4(p *params, b *ir.Builder) {
	const (
		period    = 4    // of layers that see all: files do not carry it
		chunk     = 8192 // nor this
		sharpness = 0.1  // nor this; the logarithm grows every 8192 positions
		scout     = 16   // experts of the model whose heads are normalised
	)
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	m.before, m.shared = true, m.ffn
	near := s.attention()
	near.Window, near.Chunked = chunk, true
	if w := p.window(); w > 0 {
		near.Window = w
	}
	every := p.countOr("interleave_moe_layer_step", maxLayers, 1)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q, k := b.Linear(n, "attn_q", s.heads*s.kDim), b.Linear(n, "attn_k", s.kvHeads*s.kDim)
		v, a := b.Linear(n, "attn_v", s.kvHeads*s.vDim), near
		switch {
		case (l+1)%period == 0:
			a, q = s.attention(), b.Temper(q, sharpness, chunk, 1)
		case m.experts <= scout:
			q, k = b.BareHeadNorm(r.turn(b, q), s.kDim, s.eps), b.BareHeadNorm(r.turn(b, k), s.kDim, s.eps)
		default:
			q, k = r.turn(b, q), r.turn(b, k)
		}
		x = b.Add(x, b.Linear(b.Attend(q, k, v, a), "attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", s.eps)
		if (l+1)%every == 0 {
			x = b.Add(x, m.besideShared(b, n))
		} else {
			x = b.Add(x, s.swiglu(b, n))
		}
	}
	s.head(b, x)
}
