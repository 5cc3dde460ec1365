package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Nemotron-H and Nemotron Nano 2. Papers: arXiv:2504.03624, arXiv:2508.14444; compared with llama.cpp.
// Differs from Mamba-2: a layer is one of a state space, attention without RoPE, and a feed-forward network without
// gate, squared ReLU. The file says by the features of its network, and by its heads of K and V, which one it is.
func nemotronH(p *params, b *ir.Builder) {
	s := p.stream("attention.layer_norm_rms_epsilon")
	if p.hasExperts() {
		p.faultf("%s: %s has no experts, or they are not supported yet", p.key("expert_count"), p.arch)
	}
	var attends func(layer int) bool
	s.kvHeads, attends = p.kvHeadsByLayer(s.layers)
	p.heads(&s)
	a := s.attention()
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))
	m, ffn := p.states(), p.ffnByLayer(s.layers)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		if s.ffn = ffn(l); s.ffn > 0 {
			b.FFN()
		}
		n := b.RMSNorm(x, "attn_norm", s.eps)
		switch {
		case s.ffn > 0:
			x = b.Add(x, s.ungated(b, n, ir.ReLU2))
		case attends(l):
			x = b.Add(x, s.selfAttend(b, n, rope{}, a))
		default:
			x = b.Add(x, m.space(b, n, &s, true))
		}
	}
	s.head(b, x)
}

// ffnByLayer reads how many features the networks of layers have; a layer with 0 has none.
func (p *params) ffnByLayer(layers int) func(layer int) int {
	const name = "feed_forward_length"
	list, err := p.meta.Ints(p.key(name))
	if err != nil {
		n := p.integer(name, 0, maxFFN)
		return func(int) int { return n }
	}
	if len(list) < layers {
		p.faultf("%s: has %d layers, want %d", p.key(name), len(list), layers)
		return func(int) int { return 0 }
	}
	for l, n := range list[:layers] {
		if n < 0 || n > maxFFN {
			p.faultf("%s: is %d for layer %d, want 0 to %d", p.key(name), n, l, maxFFN)
		}
	}
	return func(l int) int { return int(min(max(list[l], 0), maxFFN)) }
}
