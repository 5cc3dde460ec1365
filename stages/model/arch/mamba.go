package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Mamba. Paper: arXiv:2312.00752; compared with llama.cpp. FalconMamba (arXiv:2410.05355) also normalises δ, B and C.
// Differs from Mamba-2: each channel has a state of its own, of which every value decays at its own rate; steps, B and
// C come from what was convolved, by a matrix of few features.
func mamba(p *params, b *ir.Builder) {
	s := shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		eps:    float32(p.positive("attention.layer_norm_rms_epsilon")),
	}
	p.context = p.count("context_length", maxContext)
	m := p.selective()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, m.mix(b, b.RMSNorm(x, "attn_norm", s.eps), &s))
	}
	s.head(b, x)
}

// selective is the sizes of Mamba's mixer.
type selective struct {
	kernel, rank int
	normed       bool // δ, B and C are, without weights
	scan         ir.ScanArgs
}

func (p *params) selective() selective {
	m := selective{
		kernel: p.integer("ssm.conv_kernel", 2, maxHeadDim),
		rank:   p.count("ssm.time_step_rank", maxWidth),
		scan: ir.ScanArgs{Heads: p.count("ssm.inner_size", maxWidth), Groups: 1, KDim: p.count("ssm.state_size", maxHeadDim),
			VDim: 1, Scale: 1, ByKey: true},
	}
	if p.has("ssm.dt_b_c_rms") {
		m.normed = p.flag("ssm.dt_b_c_rms")
	}
	return m
}

func (m *selective) mix(b *ir.Builder, x ir.Value, s *shape) ir.Value {
	inner, size := m.scan.Heads, m.scan.KDim
	all := b.Linear(x, "ssm_in", 2*inner)
	v, gate := b.Slice(all, 0, inner), b.Slice(all, inner, inner)
	v = b.Act(ir.SiLU, b.CausalConv(v, "ssm_conv1d", m.kernel))
	low := b.Linear(v, "ssm_x", m.rank+2*size)
	delta := m.norm(b, b.Slice(low, 0, m.rank), "ssm_dt_norm", s)
	k, q := m.norm(b, b.Slice(low, m.rank, size), "ssm_b_norm", s), m.norm(b, b.Slice(low, m.rank+size, size), "ssm_c_norm", s)
	y := b.SSMScan(q, k, v, b.LinearBare(delta, "ssm_dt", inner), "ssm_a", "ssm_dt.bias", "ssm_d", m.scan)
	return b.Linear(b.GLU(ir.SiLU, gate, y), "ssm_out", s.width)
}

// norm normalises if the file has a weight for it, or says that all models of it do.
func (m *selective) norm(b *ir.Builder, x ir.Value, name string, s *shape) ir.Value {
	switch {
	case b.Has(name + ".weight"):
		return b.RMSNorm(x, name, s.eps)
	case m.normed:
		return b.BareHeadNorm(x, b.Width(x), s.eps)
	}
	return x
}

// Jamba. Paper: arXiv:2403.19887; compared with llama.cpp.
// Differs from Mamba: some layers have attention instead, without RoPE; all have a feed-forward network too, which has
// experts in some layers.
func jamba(p *params, b *ir.Builder) {
	s, attends := p.hybrid("attention.layer_norm_rms_epsilon")
	m, a := p.selective(), s.attention()
	var experts mixture
	if p.hasExperts() {
		experts = p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll})
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		if n := b.RMSNorm(x, "attn_norm", s.eps); attends(l) {
			x = b.Add(x, s.selfAttend(b, n, rope{}, a))
		} else {
			x = b.Add(x, m.mix(b, n, &s))
		}
		b.FFN()
		if n := b.RMSNorm(x, "ffn_norm", s.eps); experts.experts > 0 && b.Has("ffn_gate_inp.weight") {
			x = b.Add(x, experts.network(b, n))
		} else {
			x = b.Add(x, s.swiglu(b, n))
		}
	}
	s.head(b, x)
}

// PLaMo 2. Compared with llama.cpp.
// Differs from Mamba-2: what is convolved is v alone, from which k, q and the steps come by a matrix of few features,
// each normalised; gate and v lie side by side, head by head. Some layers have attention instead, whose heads of Q and
// K are normalised by weights of their own; blocks are normalised before and after, gate and up are one matrix.
func plamo2(p *params, b *ir.Builder) {
	p.context = p.count("context_length", maxContext)
	s := shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		ffn:    p.count("feed_forward_length", maxFFN),
		eps:    float32(p.positive("attention.layer_norm_rms_epsilon")),
	}
	for _, n := range p.byLayerFrom(0, "attention.head_count", s.layers, maxHeads) {
		s.heads = max(s.heads, n)
	}
	s.heads = max(s.heads, 1)
	var attends func(layer int) bool
	s.kvHeads, attends = p.kvHeadsByLayer(s.layers)
	p.heads(&s)
	r := p.rope(&s, halves, 10000)
	m := p.states()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		if attends(l) {
			n = s.eachNormed(b, n, r)
		} else {
			n = m.plamo(b, n, &s)
		}
		x = b.Add(x, b.RMSNormBy(n, "post_attention_norm", s.eps))
		b.FFN()
		up := b.Linear(b.RMSNorm(x, "ffn_norm", s.eps), "ffn_up", 2*s.ffn)
		n = b.SwiGLU(b.Slice(up, 0, s.ffn), b.Slice(up, s.ffn, s.ffn))
		x = b.Add(x, b.RMSNormBy(b.Linear(n, "ffn_down", s.width), "post_ffw_norm", s.eps))
	}
	s.head(b, x)
}

// eachNormed is attention whose heads of Q and K are normalised, each by weights of its own.
func (s *shape) eachNormed(b *ir.Builder, x ir.Value, r rope) ir.Value {
	a := s.attention()
	a.Scale = float32(1 / math.Sqrt(float64(s.vDim)))
	q, k, v := s.qkv(b, x)
	q, k = b.GroupNorm(q, "attn_q_norm", s.heads, s.eps), b.GroupNorm(k, "attn_k_norm", s.kvHeads, s.eps)
	return b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, a), "attn_output", s.width)
}

func (m *states) plamo(b *ir.Builder, x ir.Value, s *shape) ir.Value {
	heads, size, rank := m.scan.Heads, m.scan.KDim, max(64, s.width/16)
	all := b.Linear(x, "ssm_in", 2*m.inner)
	gate, v := b.HeadSlice(all, heads, 0, m.scan.VDim), b.HeadSlice(all, heads, m.scan.VDim, m.scan.VDim)
	v = b.Act(ir.SiLU, b.CausalConv(v, "ssm_conv1d", m.kernel))
	low := b.Linear(v, "ssm_x", 2*size+rank)
	k, q := b.RMSNormBy(b.Slice(low, 0, size), "ssm_b_norm", s.eps), b.RMSNormBy(b.Slice(low, size, size), "ssm_c_norm", s.eps)
	delta := b.LinearBare(b.RMSNormBy(b.Slice(low, 2*size, rank), "ssm_dt_norm", s.eps), "ssm_dt", heads)
	y := b.SSMScan(q, k, v, delta, "ssm_a", "ssm_dt.bias", "ssm_d", m.scan)
	return b.Linear(b.GLU(ir.SiLU, gate, y), "ssm_out", s.width)
}
