package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Phi 3, 3.5 and 4. Paper: arXiv:2404.14219; checked against transformers, modeling_phi3.py.
// Differs from Llama: Q, K and V are one matrix, gate and up another; RoPE turns halves, of Phi-4-mini only three
// quarters; a sliding window (llama.cpp leaves it out). The long versions divide frequencies by one tensor within
// the context they grew from and by another beyond it: which, the chosen context decides.
func phi3(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.longRope(&s, b)
	a := s.attention()
	a.Window = p.window()
	q, k, v := s.heads*s.kDim, s.kvHeads*s.kDim, s.kvHeads*s.vDim

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		qkv := b.Linear(b.RMSNorm(x, "attn_norm", s.eps), "attn_qkv", q+k+v)
		o := b.Attend(r.turn(b, b.Slice(qkv, 0, q)), r.turn(b, b.Slice(qkv, q, k)), b.Slice(qkv, q+k, v), a)
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.fusedSwiGLU(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}

// longRope turns halves, and its factors are those of the context that was chosen.
func (p *params) longRope(s *shape, b *ir.Builder) rope { return p.longRopeBy(s, b, halves) }

// longRopeBy is longRope of any pairs.
func (p *params) longRopeBy(s *shape, b *ir.Builder, pairs pairing) rope {
	const long, short = "rope_factors_long.weight", "rope_factors_short.weight"
	r := p.rope(s, pairs, 10000)
	if b.Has(long) || b.Has(short) {
		r.factors = short
		if p.chosenContext() > p.originalContext() {
			r.factors = long
		}
		b.Ignore(long, short)
	}
	return r
}

// chosenContext is the number of positions that sequences may have.
func (p *params) chosenContext() int {
	if p.options.Context > 0 {
		return p.options.Context
	}
	return p.context
}
