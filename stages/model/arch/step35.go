package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Step 3.5. Report: arXiv:2602.10604; compared with llama.cpp.
// Differs from dots.llm1: what each head attended to is multiplied by a sigmoid gate of one feature; most layers have a
// window, heads and a base of RoPE of their own; RoPE of the others turns half of what the file says; networks are
// limited, by layer, and some layers are dense. The last layers of a file are heads that predict tokens further on.
func step35(p *params, b *ir.Builder) {
	s, heads := p.ownHeads("attention.layer_norm_rms_epsilon")
	s.ffn = p.count("feed_forward_length", maxFFN)
	near, far := p.stepRopes(&s, b)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	m.shared, m.act = p.countOr("expert_shared_feed_forward_length", maxFFN, m.ffn), ir.SiLUClipped
	all := s.layers
	x, layers := p.trunk(&s, b)
	if p.options.Head {
		p.faultf("%s: heads of models with windows are not supported", p.key(nextKey))
		return
	}
	window, local := p.window(), p.local(s.layers, 4)
	limits, sharedLimits := p.limits("swiglu_clamp_exp", all), p.limits("swiglu_clamp_shexp", all)

	for _, l := range layers {
		heads(&s, l)
		a, r := s.attention(), far
		if local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		x = b.Add(x, s.headGated(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		n := b.RMSNorm(x, "ffn_norm", s.eps)
		if !b.Has("ffn_gate_inp.weight") {
			x = b.Add(x, s.swiglu(b, n))
			continue
		}
		m.limit, m.sharedLimit = limits[l], sharedLimits[l]
		x = b.Add(x, m.besideShared(b, n))
	}
	s.head(b, x)
}

// stepRopes are the ropes of layers with a window, and of the others.
func (p *params) stepRopes(s *shape, b *ir.Builder) (near, far rope) {
	all := p.plainRope(s, halves, 10000)
	near = p.scaled(p.swaRope(s, all))
	far = p.scaled(s.newRope(halves, max(all.args.Dims/4*2, 2), all.base))
	if b.Has("rope_freqs.weight") {
		far.factors, far.args.Divisors = "rope_freqs.weight", all.args.Dims/2
	}
	return near, far
}

// headGated is attention whose heads are normalised where the file has norms, and times gates, one for each head.
func (s *shape) headGated(b *ir.Builder, x ir.Value, r rope, a ir.AttendArgs) ir.Value {
	q, k, v := s.qkv(b, x)
	if b.Has("attn_q_norm.weight") {
		q = b.HeadNorm(q, "attn_q_norm", s.kDim, s.eps)
	}
	if b.Has("attn_k_norm.weight") {
		k = b.HeadNorm(k, "attn_k_norm", s.kDim, s.eps)
	}
	o := b.Attend(r.turn(b, q), r.turn(b, k), v, a)
	if b.Has("attn_gate.weight") {
		o = b.Mul(o, b.Act(ir.Sigmoid, b.Linear(x, "attn_gate", s.heads)))
	}
	return b.Linear(o, "attn_output", s.width)
}

// limits reads the limit of each layer's networks; 0: they have none.
func (p *params) limits(name string, layers int) []float32 {
	all := make([]float32, layers)
	if !p.has(name) {
		return all
	}
	for l, x := range p.floats(p.key(name), layers) {
		if all[l] = float32(x); x < 0 || x > 0 && x < math.SmallestNonzeroFloat32 {
			p.faultf("%s: is %v for layer %d, want a limit, or 0", p.key(name), x, l)
			all[l] = 0
		}
	}
	return all
}
