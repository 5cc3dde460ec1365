package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// RWKV 6. Paper: arXiv:2404.05892; compared with llama.cpp.
// Differs from Llama in everything: layers see the row before through a mixture of it and their own row, and the others
// through a matrix for each head, which decays at rates that follow from the row. The output of its blocks is halved
// every so many layers, as files of half precision need it.
func rwkv6(p *params, b *ir.Builder) {
	m := p.rwkv("attention.layer_norm_epsilon")
	m.readRanks(p)
	m.scan.Before = true
	rescale := p.countOr("rescale_every_n_layers", maxLayers, maxLayers+1)

	x := b.LayerNorm(b.Embed("token_embd", m.vocab, m.width), "token_embd_norm", m.eps)
	for l := range m.layers {
		b.Layer(l)
		x = b.Add(x, m.timeMix(b, b.LayerNorm(x, "attn_norm", m.eps)))
		b.FFN()
		n := b.LayerNorm(x, "attn_norm_2", m.eps)
		change := m.change(b, n)
		k := b.Act(ir.ReLU2, b.Linear(m.toward(b, n, change, "channel_mix_lerp_k"), "channel_mix_key", m.ffn))
		r := b.Linear(m.toward(b, n, change, "channel_mix_lerp_r"), "channel_mix_receptance", m.width)
		x = b.Add(x, b.GLU(ir.Sigmoid, r, b.Linear(k, "channel_mix_value", m.width)))
		if (l+1)%rescale == 0 {
			x = b.Scale(x, 0.5)
		}
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", m.eps), "output", "token_embd")
}

// QRWKV 6: Qwen 2 whose attention became RWKV 6's. Compared with llama.cpp.
// Differs from RWKV 6: RMS norms, and Qwen's feed-forward network; the state is read after the row, and takes in what
// it forgets of a key; gates are sigmoids; heads may share K and V.
func rwkv6qwen2(p *params, b *ir.Builder) {
	m := p.rwkv("attention.layer_norm_rms_epsilon")
	m.readRanks(p)
	m.linear = true
	m.scan.Scale = float32(1 / math.Sqrt(float64(m.head)))
	m.asQwen(b, b.Embed("token_embd", m.vocab, m.width), func(x ir.Value, _ int) ir.Value {
		return m.timeMix(b, b.RMSNorm(x, "attn_norm", m.eps))
	})
}

// rwkv is the sizes of RWKV's layers.
type rwkv struct {
	shape
	head         int // features of a head
	shared       int // heads that share K and V
	extra, decay int // RWKV 6: features between the matrices of mixtures, and of decays
	linear       bool
	scan         ir.ScanArgs
}

func (p *params) rwkv(eps string) rwkv {
	p.context = p.count("context_length", maxContext)
	m := rwkv{shape: shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		ffn:    p.count("feed_forward_length", maxFFN),
		eps:    float32(p.positive(eps)),
	}, head: p.count("wkv.head_size", maxHeadDim), shared: 1}
	if m.width%m.head != 0 {
		p.faultf("%s: is %d, want a divisor of %s, %d", p.key("wkv.head_size"), m.head, p.key("embedding_length"), m.width)
		m.head = 1
	}
	m.heads = m.width / m.head
	m.kvHeads = m.heads
	m.scan = ir.ScanArgs{Heads: m.heads, KDim: m.head, VDim: m.head, Scale: 1}
	return m
}

// readRanks reads what RWKV 6 has beside: sizes of its small matrices, and which heads share K and V, if any do.
func (m *rwkv) readRanks(p *params) {
	const kv = "attention.head_count_kv"
	m.extra, m.decay = p.count("time_mix_extra_dim", maxWidth), p.count("time_decay_extra_dim", maxWidth)
	if !p.has(kv) {
		return
	}
	if n := p.integer(kv, 0, maxHeads); n > 0 {
		if m.heads%n != 0 {
			p.faultf("%s: is %d, want a divisor of the number of heads, %d", p.key(kv), n, m.heads)
			n = m.heads
		}
		m.kvHeads, m.shared = n, m.heads/n
	}
}

// asQwen records layers of RMS norms and Qwen's network around a mixer, and the end.
func (m *rwkv) asQwen(b *ir.Builder, x ir.Value, mix func(x ir.Value, layer int) ir.Value) {
	for l := range m.layers {
		b.Layer(l)
		x = b.Add(x, mix(x, l))
		b.FFN()
		x = b.Add(x, m.swiglu(b, b.RMSNorm(x, "ffn_norm", m.eps)))
	}
	m.shape.head(b, x)
}

// change is how the row before differs.
func (m *rwkv) change(b *ir.Builder, x ir.Value) ir.Value {
	return b.Add(b.Previous(x), b.Scale(x, -1))
}

// toward is x and a part of the change, by a vector.
func (m *rwkv) toward(b *ir.Builder, x, change ir.Value, name string) ir.Value {
	return b.Add(x, b.AffineTable(change, name+".weight", "", 1))
}

// mixtures returns the rows that decays, K, V, R and the gate are computed from: x and parts of the change, which
// follow from a mixture themselves. Early files have the constant parts one by one.
func (m *rwkv) mixtures(b *ir.Builder, x ir.Value) (all [5]ir.Value) {
	change := m.change(b, x)
	low := b.SoftCap(b.Linear(m.toward(b, x, change, "time_mix_lerp_x"), "time_mix_w1", 5*m.extra), 1) // tanh
	parts := b.HeadLinear(low, "time_mix_w2", 5, m.width)
	fused := b.Has("time_mix_lerp_fused.weight")
	if fused {
		parts = b.AffineTable(parts, "", "time_mix_lerp_fused.weight", 5)
	}
	for i, name := range []string{"w", "k", "v", "r", "g"} {
		part := b.Slice(parts, i*m.width, m.width)
		if !fused {
			part = b.AffineTable(part, "", "time_mix_lerp_"+name+".weight", 1)
		}
		all[i] = b.Add(x, b.Mul(change, part))
	}
	return all
}

func (m *rwkv) timeMix(b *ir.Builder, x ir.Value) ir.Value {
	in := m.mixtures(b, x)
	low := b.SoftCap(b.Linear(in[0], "time_mix_decay_w1", m.decay), 1)
	rate := b.AffineTable(b.Linear(low, "time_mix_decay_w2", m.width), "", "time_mix_decay.weight", 1)
	g := b.Scale(b.Act(ir.Exp, rate), -1)
	k := m.repeat(b, b.Linear(in[1], "time_mix_key", m.kvHeads*m.head))
	v := m.repeat(b, b.Linear(in[2], "time_mix_value", m.kvHeads*m.head))
	r, gate := b.Linear(in[3], "time_mix_receptance", m.width), b.Linear(in[4], "time_mix_gate", m.width)
	var y ir.Value
	if m.linear {
		k = b.Add(k, b.Scale(b.Mul(k, b.Act(ir.Exp, g)), -1))
		y = b.GLU(ir.Sigmoid, gate, b.WKV(r, k, v, g, m.scan))
	} else {
		own := b.HeadDot(b.AffineTable(r, "time_mix_first.weight", "", m.heads), k, m.heads)
		y = b.Add(b.WKV(r, k, v, g, m.scan), b.Mul(v, own))
		y = b.GLU(ir.SiLU, gate, b.HeadLayerNorm(y, "time_mix_ln", m.head, mixEps))
	}
	return b.Linear(y, "time_mix_output", m.width)
}

// mixEps is the epsilon of norms of heads, which files do not carry.
const mixEps = 64e-5

// repeat gives each of the heads that share one a copy of it.
func (m *rwkv) repeat(b *ir.Builder, x ir.Value) ir.Value {
	all := x
	for range m.shared - 1 {
		all = b.HeadJoin(all, x, m.kvHeads)
	}
	return all
}
