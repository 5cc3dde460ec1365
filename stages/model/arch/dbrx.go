package arch

import "github.com/sluice-ai/sluice/internal/ir"

// DBRX. Compared with llama.cpp.
// Differs from Qwen 3 mixtures: LayerNorms without bias; Q, K and V are one matrix, and clipped.
func dbrx(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_epsilon")
	s.clip = p.clip()
	r := p.rope(&s, halves, 10000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.LayerNormNoBias(x, "attn_norm", s.eps))
		o := b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention())
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		x = b.Add(x, m.network(b, b.LayerNormNoBias(x, "attn_output_norm", s.eps)))
	}
	b.Head(b.LayerNormNoBias(b.Rows(x), "output_norm", s.eps), "output", "token_embd")
}

// clip reads the limit of Q, K and V; 0: they are not clipped.
func (p *params) clip() float32 { return float32(p.optional("attention.clamp_kqv")) }

// clipped keeps Q, K and V within the shape's limit.
func (s *shape) clipped(b *ir.Builder, x ir.Value) ir.Value {
	if s.clip == 0 {
		return x
	}
	return b.Clip(x, s.clip)
}
