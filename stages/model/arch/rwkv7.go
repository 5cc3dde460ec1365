package arch

import "github.com/sluice-ai/sluice/internal/ir"

// RWKV 7. Paper: arXiv:2503.14456; compared with llama.cpp.
// Differs from RWKV 6: mixtures of a row and the one before are constant; the state also unlearns what it knew of a
// key, at a rate that follows from the row; values are mixed with the first layer's; the feed-forward network has no
// gate.
func rwkv7(p *params, b *ir.Builder) {
	m := rwkv7Net{rwkv: p.rwkv("attention.layer_norm_epsilon")}
	m.read(p, b)

	x := b.LayerNorm(b.Embed("token_embd", m.vocab, m.width), "token_embd_norm", m.eps)
	norm := func(x ir.Value) ir.Value { return b.LayerNorm(x, "attn_norm", m.eps) }
	m.begin(b, x, norm)
	for l := range m.layers {
		b.Layer(l)
		x = b.Add(x, m.mix(b, x, l, norm))
		b.FFN()
		n := b.LayerNorm(x, "attn_norm_2", m.eps)
		k := m.toward(b, n, m.change(b, n), "channel_mix_lerp_k")
		k = b.Act(ir.ReLU2, b.Linear(k, "channel_mix_key", m.ffn))
		x = b.Add(x, b.Linear(k, "channel_mix_value", m.width))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", m.eps), "output", "token_embd")
}

// ARWKV 7: Qwen 2 whose attention became RWKV 7's. Paper: arXiv:2501.15570; compared with llama.cpp.
// Differs from RWKV 7: RMS norms, and Qwen's feed-forward network; it may lack gates, and norms of heads.
func arwkv7(p *params, b *ir.Builder) {
	m := rwkv7Net{rwkv: p.rwkv("attention.layer_norm_rms_epsilon")}
	m.read(p, b)
	x := b.Embed("token_embd", m.vocab, m.width)
	norm := func(x ir.Value) ir.Value { return b.RMSNorm(x, "attn_norm", m.eps) }
	m.begin(b, x, norm)
	m.asQwen(b, x, func(x ir.Value, layer int) ir.Value { return m.mix(b, x, layer, norm) })
}

// rwkv7Net is the sizes of RWKV 7's layers, and what all of them read of the first one.
type rwkv7Net struct {
	rwkv
	rates, unlearning, residual, gate int        // features between the matrices of each; 0: there is no gate
	rows                              []ir.Value // of the first layer, which mixers begin with
	value                             ir.Value   // of the first layer
}

// read reads the sizes. The first layer's tensors for mixing its values with themselves may be there.
func (m *rwkv7Net) read(p *params, b *ir.Builder) {
	m.rates = p.count("attention.decay_lora_rank", maxWidth)
	m.unlearning = p.count("attention.iclr_lora_rank", maxWidth)
	m.residual = p.count("attention.value_residual_mix_lora_rank", maxWidth)
	if p.has("attention.gate_lora_rank") {
		m.gate = p.integer("attention.gate_lora_rank", 0, maxWidth)
	}
	b.Ignore("blk.0.time_mix_v0.weight", "blk.0.time_mix_v1.weight", "blk.0.time_mix_v2.weight")
}

// begin computes the first layer's values with the embedding, so that all layers can read them.
func (m *rwkv7Net) begin(b *ir.Builder, x ir.Value, norm func(x ir.Value) ir.Value) {
	b.Ahead(0)
	m.rows = m.mixed(b, norm(x))
	m.value = b.Linear(m.rows[3], "time_mix_value", m.width)
}

// mixed returns the rows that R, decays, K, V, what is unlearnt and the gate are computed from.
func (m *rwkv7Net) mixed(b *ir.Builder, x ir.Value) (all []ir.Value) {
	change, n := m.change(b, x), 5
	if m.gate > 0 {
		n = 6
	}
	tiled := change
	for range n - 1 {
		tiled = b.HeadJoin(tiled, change, 1)
	}
	tiled = b.AffineTable(tiled, "time_mix_lerp_fused.weight", "", n)
	for i := range n {
		all = append(all, b.Add(x, b.Slice(tiled, i*m.width, m.width)))
	}
	return all
}

// mix is a layer's mixer.
func (m *rwkv7Net) mix(b *ir.Builder, x ir.Value, layer int, norm func(x ir.Value) ir.Value) ir.Value {
	in, v := m.rows, m.value
	if layer > 0 {
		in = m.mixed(b, norm(x))
		v = b.Linear(in[3], "time_mix_value", m.width)
		toFirst := b.Add(m.value, b.Scale(v, -1))
		v = b.Add(v, b.GLU(ir.Sigmoid, m.small(b, in[3], "v", m.residual, b.Linear), toFirst))
	}
	const slowest = 0.606531 // e^−0.5: nothing is forgotten faster in a step than by e^−0.606531
	tanh := func(x ir.Value, name string, n int) ir.Value { return b.SoftCap(b.Linear(x, name, n), 1) }
	g := b.Scale(b.Act(ir.Sigmoid, m.small(b, in[1], "w", m.rates, tanh)), -slowest)
	r, k := b.Linear(in[0], "time_mix_receptance", m.width), b.Linear(in[2], "time_mix_key", m.width)
	rate := b.Act(ir.Sigmoid, m.small(b, in[4], "a", m.unlearning, b.Linear))
	known := b.L2Norm(b.AffineTable(k, "time_mix_k_k.weight", "", 1), m.head, 1e-12)
	part := b.AffineTable(k, "time_mix_k_a.weight", "", 1)
	k = b.Add(k, b.Add(b.Mul(part, rate), b.Scale(part, -1)))
	y := b.WKV(r, k, v, g, m.scan, b.Scale(known, -1), b.Mul(known, rate))
	if b.Has("time_mix_ln.weight") {
		y = b.HeadLayerNorm(y, "time_mix_ln", m.head, mixEps)
	}
	own := b.HeadDot(r, b.AffineTable(k, "time_mix_r_k.weight", "", 1), m.heads)
	y = b.Add(y, b.Mul(v, own))
	if m.gate > 0 {
		low := b.Act(ir.Sigmoid, b.Linear(in[5], "time_mix_g1", m.gate))
		y = b.Mul(y, b.Linear(low, "time_mix_g2", m.width))
	}
	return b.Linear(y, "time_mix_output", m.width)
}

// small is two matrices with few features between them, and a bias.
func (m *rwkv7Net) small(b *ir.Builder, x ir.Value, name string, rank int,
	first func(x ir.Value, name string, out int) ir.Value) ir.Value {
	y := b.Linear(first(x, "time_mix_"+name+"1", rank), "time_mix_"+name+"2", m.width)
	return b.AffineTable(y, "", "time_mix_"+name+"0.weight", 1)
}
