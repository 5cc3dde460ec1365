package arch

import "github.com/sluice-ai/sluice/internal/ir"

// MiMo V2. Report: arXiv:2601.02780; compared with llama.cpp.
// Differs from Llama: most layers have a window, heads of K and V and a base of RoPE of their own, and sinks; RoPE
// turns halves of a part of each head; values are shorter than keys, and may be scaled; the first layers are dense, the
// others have experts by sigmoids, normalised, and a bias that only their choice sees.
func mimo2(p *params, b *ir.Builder) {
	s := p.stream("attention.layer_norm_rms_epsilon")
	s.ffn = p.count("feed_forward_length", maxFFN)
	kv := p.byLayer("attention.head_count_kv", s.layers, maxHeads)
	s.kvHeads = 1
	p.heads(&s)
	global := p.rope(&s, halves, 10000)
	near := p.swaRope(&s, global)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach, Normalise: true})
	window, local := p.window(), p.local(s.layers, 1)
	scale := float32(p.positiveOr("attention.value_scale", 1))

	x, layers := p.trunk(&s, b)
	if p.options.Head {
		p.faultf("%s: heads of models with windows are not supported", p.key(nextKey))
		return
	}
	for _, l := range layers {
		if s.kvHeads = kv[l]; s.heads%s.kvHeads != 0 {
			p.faultf("%s: is %d for layer %d, want a divisor of %d", p.key("attention.head_count_kv"), s.kvHeads, l, s.heads)
			s.kvHeads = s.heads
		}
		a, r := s.attention(), global
		if window > 0 && local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		o := attendSinking(b, r.turn(b, q), r.turn(b, k), v, a)
		x = b.Add(x, b.Scale(b.Linear(o, "attn_output", s.width), scale))
		b.FFN()
		n := b.RMSNorm(x, "ffn_norm", s.eps)
		if b.Has("ffn_gate_inp.weight") {
			x = b.Add(x, m.besideShared(b, n))
		} else {
			x = b.Add(x, s.swiglu(b, n))
		}
	}
	s.head(b, x)
}

// attendSinking is attention with sinks, where the file has them.
func attendSinking(b *ir.Builder, q, k, v ir.Value, a ir.AttendArgs) ir.Value {
	if b.Has("attn_sinks.weight") {
		return b.AttendSinks(q, k, v, "attn_sinks", a)
	}
	return b.Attend(q, k, v, a)
}
