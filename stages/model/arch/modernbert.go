package arch

import "github.com/sluice-ai/sluice/internal/ir"

// ModernBERT. Paper: arXiv:2412.13663; compared with llama.cpp.
// Differs from BERT: norms come before each block, and have no bias; RoPE turns halves; the feed-forward network is
// gated, by one matrix; of three layers the last two see half a window on each side, by a RoPE base of their own. The
// first layer's attention has no norm: what was looked up has been normalised.
func modernBERT(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_epsilon")
	global := p.rope(&s, halves, 160000)
	near := s.newRope(halves, global.args.Dims, p.positiveOr("rope.freq_base_swa", global.base))
	local, reach := p.localBehind(s.layers, 3), p.window()/2
	a, act := s.attention(), p.activation(ir.GELUErf)
	a.Both = true
	if p.pooling() == ir.PoolRank {
		p.faultf("%s: is %d, and rerankers of this architecture are not supported", p.key("pooling_type"), ir.PoolRank)
	}

	x := b.LayerNormNoBias(b.Embed("token_embd", s.vocab, s.width), "token_embd_norm", s.eps)
	for l := range s.layers {
		r := global
		a.Reach = 0
		if reach > 0 && local(l) {
			r, a.Reach = near, reach
		}
		b.Layer(l)
		n := x
		if b.Has("attn_norm.weight") {
			n = b.LayerNormNoBias(x, "attn_norm", s.eps)
		}
		q, k, v := s.qkv(b, n)
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, a), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.fusedGated(b, b.LayerNormNoBias(x, "ffn_norm", s.eps), act))
	}
	b.Vectors(b.LayerNormNoBias(b.Pool(x), "output_norm", s.eps))
	b.Pooling(p.pooling())
	b.Ignore("cls.")
}

// activation is the function of a feed-forward network that the file may name.
func (p *params) activation(otherwise ir.Act) ir.Act {
	const key = "hidden_activation"
	if !p.has(key) {
		return otherwise
	}
	name, err := p.meta.String(p.key(key))
	if err != nil {
		p.faults = append(p.faults, err)
	}
	switch name {
	case "silu":
		return ir.SiLU
	case "gelu":
		return ir.GELUErf
	case "relu2":
		return ir.ReLU2
	}
	if err == nil {
		p.faultf("%s: is %.40q, want gelu, relu2 or silu", p.key(key), name)
	}
	return otherwise
}
