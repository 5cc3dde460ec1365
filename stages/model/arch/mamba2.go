package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Mamba-2. Paper: arXiv:2405.21060; checked against transformers, modeling_mamba2.py.
// Differs from Llama in everything: a layer is a state space alone, without attention and without a feed-forward part.
func mamba2(p *params, b *ir.Builder) {
	s := shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		eps:    float32(p.positive("attention.layer_norm_rms_epsilon")),
	}
	p.context = p.count("context_length", maxContext)
	m := p.states()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, m.space(b, b.RMSNorm(x, "attn_norm", s.eps), &s, true))
	}
	s.head(b, x)
}

// space is Mamba-2's mixer: one matrix makes the gate, what is convolved, which is v, k and q, and the steps. It may
// have no norm.
func (m *states) space(b *ir.Builder, x ir.Value, s *shape, normed bool) ir.Value {
	keys := m.scan.Groups * m.scan.KDim
	mixed := m.inner + 2*keys
	all := b.Linear(x, "ssm_in", m.inner+mixed+m.scan.Heads)
	gate, steps := b.Slice(all, 0, m.inner), b.Slice(all, m.inner+mixed, m.scan.Heads)
	vkq := b.Act(ir.SiLU, b.CausalConv(b.Slice(all, m.inner, mixed), "ssm_conv1d", m.kernel))
	v, k, q := b.Slice(vkq, 0, m.inner), b.Slice(vkq, m.inner, keys), b.Slice(vkq, m.inner+keys, keys)
	y := b.GLU(ir.SiLU, gate, b.SSMScan(q, k, v, steps, "ssm_a", "ssm_dt.bias", "ssm_d", m.scan))
	if normed {
		y = b.GroupNorm(y, "ssm_norm", m.scan.Groups, s.eps)
	}
	return b.Linear(y, "ssm_out", s.width)
}
