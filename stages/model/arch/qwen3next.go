package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Qwen 3 Next. Checked against transformers, modeling_qwen3_next.py.
// Differs from Qwen 3 with experts: most layers are gated delta networks instead of attention (arXiv:2412.06464);
// attention is gated, and turns part of each head; beside the experts there is a gated network that all rows share.
func qwen3next(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	shared := p.countOr("expert_shared_feed_forward_length", maxFFN, m.ffn)
	p.deltaNets(b, &s, false, func(b *ir.Builder, x ir.Value) ir.Value { return m.besideGated(b, x, shared) })
}

// deltaNets is the program of Qwen 3 Next and 3.5: every so many layers attend, the others are gated delta networks,
// whose heads lie tiled or side by side by group.
func (p *params) deltaNets(b *ir.Builder, s *shape, tiled bool, feed func(b *ir.Builder, x ir.Value) ir.Value) {
	s.normed = true
	r := p.rope(s, halves, 10000)
	every := p.countOr("full_attention_interval", maxLayers, 4)
	m := p.states()
	m.scan.Scale, m.scan.Tiled = float32(1/math.Sqrt(float64(m.scan.KDim))), tiled

	x, layers := p.trunk(s, b)
	for _, l := range layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		if (l+1)%every == 0 || p.options.Head {
			x = b.Add(x, s.gatedAttend(b, n, r))
		} else {
			x = b.Add(x, m.deltaNet(b, n, s))
		}
		b.FFN()
		x = b.Add(x, feed(b, b.RMSNorm(x, "post_attention_norm", s.eps)))
	}
	s.head(b, x)
}

// gatedAttend is attention whose output is multiplied by a gate: behind each head of the query, the matrix gives as
// many features of the gate.
func (s *shape) gatedAttend(b *ir.Builder, x ir.Value, r rope) ir.Value {
	both := b.Linear(x, "attn_q", 2*s.heads*s.kDim)
	gate := b.HeadSlice(both, s.heads, s.kDim, s.kDim)
	q := b.HeadNorm(b.HeadSlice(both, s.heads, 0, s.kDim), "attn_q_norm", s.kDim, s.eps)
	k := b.HeadNorm(b.Linear(x, "attn_k", s.kvHeads*s.kDim), "attn_k_norm", s.kDim, s.eps)
	v := b.Linear(x, "attn_v", s.kvHeads*s.vDim)
	y := b.GLU(ir.Sigmoid, gate, b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()))
	return b.Linear(y, "attn_output", s.width)
}

// deltaNet is a gated delta network. The files have α and β in one matrix, group by group, or in two.
func (m *states) deltaNet(b *ir.Builder, x ir.Value, s *shape) ir.Value {
	const eps = 1e-6 // of the norms of q and k: files do not carry it
	keys, a := m.scan.Groups*m.scan.KDim, m.scan
	mixed, gate := m.qkvGate(b, x)
	qkv := b.Act(ir.SiLU, b.CausalConv(mixed, "ssm_conv1d", m.kernel))
	alpha, beta := m.alphaBeta(b, x)
	q, k := b.L2Norm(b.Slice(qkv, 0, keys), a.KDim, eps), b.L2Norm(b.Slice(qkv, keys, keys), a.KDim, eps)
	y := b.DeltaRule(q, k, b.Slice(qkv, 2*keys, m.inner), alpha, b.Act(ir.Sigmoid, beta), "ssm_a", "ssm_dt.bias", a)
	return b.Linear(b.GLU(m.gate, gate, b.HeadNorm(y, "ssm_norm", a.VDim, s.eps)), "ssm_out", s.width)
}

// qkvGate is what is convolved and the gate. Early files have all in one matrix, group by group.
func (m *states) qkvGate(b *ir.Builder, x ir.Value) (qkv, gate ir.Value) {
	a := &m.scan
	keys := a.Groups * a.KDim
	if !b.Has("ssm_in.weight") {
		return b.Linear(x, "attn_qkv", 2*keys+m.inner), b.Linear(x, "attn_gate", m.inner)
	}
	all, values := b.Linear(x, "ssm_in", 2*keys+2*m.inner), m.inner/a.Groups
	q, k := b.HeadSlice(all, a.Groups, 0, a.KDim), b.HeadSlice(all, a.Groups, a.KDim, a.KDim)
	v := b.HeadSlice(all, a.Groups, 2*a.KDim, values)
	return b.HeadJoin(b.HeadJoin(q, k, 1), v, 1), b.HeadSlice(all, a.Groups, 2*a.KDim+values, values)
}

func (m *states) alphaBeta(b *ir.Builder, x ir.Value) (alpha, beta ir.Value) {
	heads := m.scan.Heads
	if !b.Has("ssm_ba.weight") {
		return b.Linear(x, "ssm_alpha", heads), b.Linear(x, "ssm_beta", heads)
	}
	both, each := b.Linear(x, "ssm_ba", 2*heads), heads/m.scan.Groups
	return b.HeadSlice(both, m.scan.Groups, each, each), b.HeadSlice(both, m.scan.Groups, 0, each)
}

// besideGated is the sum of x's experts and of a network that all rows share; a gate of one feature multiplies the
// latter.
func (m *mixture) besideGated(b *ir.Builder, x ir.Value, ffn int) ir.Value {
	g := b.SwiGLU(b.Linear(x, "ffn_gate_shexp", ffn), b.Linear(x, "ffn_up_shexp", ffn))
	open := b.Act(ir.Sigmoid, b.Linear(x, "ffn_gate_inp_shexp", 1))
	shared := b.Mul(b.Linear(g, "ffn_down_shexp", b.Width(x)), open)
	return b.Add(m.network(b, x), shared)
}
