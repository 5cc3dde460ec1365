package arch

import (
	"strconv"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Nemotron-H, Nemotron Nano 2, and Nemotron 3 with experts (nemotron_h_moe). Papers: arXiv:2504.03624,
// arXiv:2508.14444, arXiv:2512.20848; compared with llama.cpp.
// Differs from Mamba-2: a layer is one of a state space, attention without RoPE, and a feed-forward network without
// gate, squared ReLU. The file says by the features of its network, and by its heads of K and V, which one it is.
// Experts have no gate either: they are chosen by sigmoids and a bias that only the choice sees, beside a network that
// all rows share. Of Nemotron 3 Super and Ultra experts see fewer features than the model has.
func nemotronH(p *params, b *ir.Builder) {
	s := p.stream("attention.layer_norm_rms_epsilon")
	var attends func(layer int) bool
	s.kvHeads, attends = p.kvHeadsByLayer(s.layers)
	p.heads(&s)
	a := s.attention()
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))
	m, ffn := p.states(), p.ffnByLayer(s.layers)
	e := p.nemotronExperts(&s)

	x := e.open(b, b.Embed("token_embd", s.vocab, s.width))
	for l := range s.layers {
		b.Layer(l)
		if s.ffn = ffn(l); s.ffn > 0 {
			b.FFN()
		}
		x = e.whole(b, x, l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		switch {
		case s.ffn > 0 && e.latent > 0:
			x = e.feed(b, x, n, l)
			continue
		case s.ffn > 0 && e.experts > 0:
			x = b.Add(x, e.besideShared(b, n))
		case s.ffn > 0:
			x = b.Add(x, s.ungated(b, n, ir.ReLU2))
		case attends(l):
			x = b.Add(x, s.selfAttend(b, n, rope{}, a))
		default:
			x = b.Add(x, m.space(b, n, &s, true))
		}
		x = e.open(b, x)
	}
	if e.latent == 0 {
		s.head(b, x)
		return
	}
	n := b.RMSNorm(e.whole(b, b.Rows(x), -1), "output_norm", s.eps)
	b.Head(n, "output", "token_embd")
}

// nemotronExperts is experts that may see fewer features than the model has, between two matrices. The second of these
// is not in the experts' segment, which holds no others: what they gave goes to the next segment beside the stream.
type nemotronExperts struct {
	mixture
	latent int
	width  int
	given  string // of what layer the stream has what experts gave beside it, as its names begin; empty: of none
}

func (p *params) nemotronExperts(s *shape) *nemotronExperts {
	e := &nemotronExperts{width: s.width}
	if !p.hasExperts() {
		return e
	}
	e.mixture = p.biasedMixture(s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	e.ungated, e.act = true, ir.ReLU2
	if p.has("moe_latent_size") {
		e.latent = p.integer("moe_latent_size", 0, maxWidth)
	}
	return e
}

// open is the stream with room beside it, if experts need any.
func (e *nemotronExperts) open(b *ir.Builder, x ir.Value) ir.Value {
	if e.latent == 0 {
		return x
	}
	beside := x
	for b.Width(beside) < e.latent {
		beside = b.HeadJoin(beside, x, 1)
	}
	return b.Stream(b.HeadJoin(x, b.Slice(beside, 0, e.latent), 1))
}

// whole is the stream alone, with what experts gave it in the layer before. Names are layer's afterwards; −1: of none.
func (e *nemotronExperts) whole(b *ir.Builder, x ir.Value, layer int) ir.Value {
	if e.latent == 0 {
		return x
	}
	y := b.Slice(x, 0, e.width)
	if e.given != "" {
		b.Within(e.given)
		y = b.Add(y, b.Linear(b.Slice(x, e.width, e.latent), "ffn_latent_up", e.width))
		e.given = ""
		b.Within("")
		if layer >= 0 {
			b.Within(layerName(layer))
		}
	}
	return y
}

// feed is the stream x, with what all rows share of n, and beside it what n's experts give.
func (e *nemotronExperts) feed(b *ir.Builder, x, n ir.Value, layer int) ir.Value {
	if e.shared > 0 {
		x = b.Add(x, e.all(b, n))
	}
	low := b.Linear(n, "ffn_latent_down", e.latent)
	e.given = layerName(layer)
	return b.HeadJoin(x, e.chosen(b, low, e.weigh(b, n)), 1)
}

// layerName is what names of a layer's tensors begin with.
func layerName(layer int) string { return "blk." + strconv.Itoa(layer) + "." }

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
