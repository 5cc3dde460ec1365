package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Nemotron-H, Nemotron Nano 2, and Nemotron 3 Nano with experts (nemotron_h_moe). Papers: arXiv:2504.03624,
// arXiv:2508.14444, arXiv:2512.20848; compared with llama.cpp.
// Differs from Mamba-2: a layer is one of a state space, attention without RoPE, and a feed-forward network without
// gate, squared ReLU. The file says by the features of its network, and by its heads of K and V, which one it is.
// Experts have no gate either: they are chosen by sigmoids and a bias that only the choice sees, beside a network that
// all rows share.
func nemotronH(p *params, b *ir.Builder) {
	s := p.stream("attention.layer_norm_rms_epsilon")
	var attends func(layer int) bool
	s.kvHeads, attends = p.kvHeadsByLayer(s.layers)
	p.heads(&s)
	a := s.attention()
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))
	m, ffn := p.states(), p.ffnByLayer(s.layers)
	feed := p.nemotronFeed(&s)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		if s.ffn = ffn(l); s.ffn > 0 {
			b.FFN()
		}
		n := b.RMSNorm(x, "attn_norm", s.eps)
		switch {
		case s.ffn > 0:
			x = b.Add(x, feed(b, n))
		case attends(l):
			x = b.Add(x, s.selfAttend(b, n, rope{}, a))
		default:
			x = b.Add(x, m.space(b, n, &s, true))
		}
	}
	s.head(b, x)
}

// nemotronFeed is the network of a layer, or the experts that all such layers have.
func (p *params) nemotronFeed(s *shape) func(b *ir.Builder, x ir.Value) ir.Value {
	if !p.hasExperts() {
		return func(b *ir.Builder, x ir.Value) ir.Value { return s.ungated(b, x, ir.ReLU2) }
	}
	if n := p.optional("moe_latent_size"); n != 0 {
		p.faultf("%s: is %v: experts of fewer features than the model are not supported yet", p.key("moe_latent_size"), n)
	}
	m := p.biasedMixture(s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	m.ungated, m.act = true, ir.ReLU2
	return m.besideShared
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
