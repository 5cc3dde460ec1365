package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Laguna. Compared with llama.cpp.
// Differs from dots.llm1: what heads attended to is multiplied by softplus of a gate, one for each head or, where there
// are no windows, for each feature; a window on all but every fourth layer, the first, whose RoPE is not scaled; layers
// have numbers of heads of their own.
func laguna(p *params, b *ir.Builder) {
	s, heads := p.ownHeads("attention.layer_norm_rms_epsilon")
	s.ffn = p.count("feed_forward_length", maxFFN)
	far := p.rope(&s, halves, 10000)
	near := p.nearRope(&s, far)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	m.shared = p.count("expert_shared_feed_forward_length", maxFFN)
	lead, window, local := p.leadingDense(), p.window(), p.localBehind(s.layers, 4)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		heads(&s, l)
		a, r, gates := s.attention(), far, s.heads*s.vDim
		if window > 0 {
			gates = s.heads
		}
		if window > 0 && local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := b.HeadNorm(b.Linear(n, "attn_q", s.heads*s.kDim), "attn_q_norm", s.kDim, s.eps)
		k := b.HeadNorm(b.Linear(n, "attn_k", s.kvHeads*s.kDim), "attn_k_norm", s.kDim, s.eps)
		o := b.Attend(r.turn(b, q), r.turn(b, k), b.Linear(n, "attn_v", s.kvHeads*s.vDim), a)
		o = b.Mul(o, b.Act(ir.Softplus, b.Linear(n, "attn_gate", gates)))
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		x = b.Add(x, m.behind(lead, l, &s, b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}

// ownHeads is the shape of families whose layers have numbers of heads of their own, without what feeds forward; heads
// sets those of a layer.
func (p *params) ownHeads(eps string) (s shape, heads func(s *shape, layer int)) {
	p.context = p.count("context_length", maxContext)
	s = shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		eps:    float32(p.positive(eps)),
	}
	q := p.byLayer("attention.head_count", s.layers, maxHeads)
	kv := q
	if p.has("attention.head_count_kv") {
		kv = p.byLayer("attention.head_count_kv", s.layers, maxHeads)
	}
	s.kDim = p.countOr("attention.key_length", maxHeadDim, s.width/q[0])
	s.vDim = p.countOr("attention.value_length", maxHeadDim, s.kDim)
	for l := range s.layers {
		if q[l]%kv[l] != 0 {
			p.faultf("%s: is %d for layer %d, want a divisor of %s, %d", p.key("attention.head_count_kv"), kv[l], l,
				p.key("attention.head_count"), q[l])
			kv[l] = q[l]
		}
	}
	return s, func(s *shape, l int) { s.heads, s.kvHeads = q[l], kv[l] }
}

// nearRope is the rope of layers with a window where it is not scaled: r's dimensions and base, or its own.
func (p *params) nearRope(s *shape, r rope) rope {
	dims := p.countOr("rope.dimension_count_swa", maxHeadDim, r.args.Dims)
	if dims > s.kDim || dims%2 != 0 {
		p.faultf("%s: is %d, want an even number of at most the head size, %d", p.key("rope.dimension_count_swa"), dims,
			s.kDim)
		dims = 2
	}
	return s.newRope(pairing(r.args.Interleaved), dims, p.positiveOr("rope.freq_base_swa", r.base))
}
