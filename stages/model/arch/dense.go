package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// shape is the hyper-parameters that all decoders have.
type shape struct {
	layers, width, vocab, ffn  int
	heads, kvHeads, kDim, vDim int
	eps                        float32
	clip                       float32 // Q, K and V lie within −clip and clip; 0: anywhere

	next   string // what names of a head's tensors begin with; empty: the program is the trunk's
	normed bool   // heads take hidden states as the output matrix does
}

// dense is decoder for families without experts.
func (p *params) dense(eps string) shape {
	if p.hasExperts() {
		p.faultf("%s: %s has no experts, or they are not supported yet", p.key("expert_count"), p.arch)
	}
	return p.decoder(eps)
}

// decoder reads the shape of a decoder. eps is the key of the norms' epsilon.
func (p *params) decoder(eps string) shape {
	s := p.stream(eps)
	s.ffn = p.count("feed_forward_length", maxFFN)
	s.kvHeads = p.countOr("attention.head_count_kv", maxHeads, s.heads)
	p.heads(&s)
	return s
}

// stream reads the part of a shape that layers of all kinds have.
func (p *params) stream(eps string) shape {
	p.context = p.count("context_length", maxContext)
	return shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		heads:  p.count("attention.head_count", maxHeads),
		eps:    float32(p.positive(eps)),
	}
}

// heads checks the numbers of heads, and reads their sizes.
func (p *params) heads(s *shape) {
	if s.heads%s.kvHeads != 0 {
		p.faultf("%s: is %d, want a divisor of %s, %d", p.key("attention.head_count_kv"), s.kvHeads,
			p.key("attention.head_count"), s.heads)
		s.kvHeads = s.heads
	}
	if !p.has("attention.key_length") && s.width%s.heads != 0 {
		p.faultf("%s: is %d, want a divisor of %s, %d", p.key("attention.head_count"), s.heads,
			p.key("embedding_length"), s.width)
	}
	s.kDim = p.countOr("attention.key_length", maxHeadDim, s.width/s.heads)
	s.vDim = p.countOr("attention.value_length", maxHeadDim, s.kDim)
}

// attention is causal attention at the usual scale, 1/√kDim.
func (s *shape) attention() ir.AttendArgs {
	return ir.AttendArgs{
		Heads: s.heads, KVHeads: s.kvHeads, KDim: s.kDim, VDim: s.vDim,
		Scale: float32(1 / math.Sqrt(float64(s.kDim))),
	}
}

// swiglu is the feed-forward network of most families.
func (s *shape) swiglu(b *ir.Builder, x ir.Value) ir.Value { return s.gated(b, x, ir.SiLU) }

// gated is W_down·(act(W_gate·x) · W_up·x).
func (s *shape) gated(b *ir.Builder, x ir.Value, act ir.Act) ir.Value {
	g := b.GLU(act, b.Linear(x, "ffn_gate", s.ffn), b.Linear(x, "ffn_up", s.ffn))
	return b.Linear(g, "ffn_down", s.width)
}

// ungated is W_down·act(W_up·x), with biases where the file has them.
func (s *shape) ungated(b *ir.Builder, x ir.Value, act ir.Act) ir.Value {
	return b.Linear(b.Act(act, b.Linear(x, "ffn_up", s.ffn)), "ffn_down", s.width)
}

// selfAttend is attention with separate projections, without anything between them and RoPE.
func (s *shape) selfAttend(b *ir.Builder, x ir.Value, r rope, a ir.AttendArgs) ir.Value {
	q := r.turn(b, b.Linear(x, "attn_q", s.heads*s.kDim))
	k := r.turn(b, b.Linear(x, "attn_k", s.kvHeads*s.kDim))
	v := b.Linear(x, "attn_v", s.kvHeads*s.vDim)
	return b.Linear(b.Attend(q, k, v, a), "attn_output", s.width)
}

// head ends a program whose last norm is an RMS norm.
func (s *shape) head(b *ir.Builder, x ir.Value) ir.Value {
	x = b.RMSNorm(b.Rows(x), s.own(b, "shared_head_norm", "output_norm"), s.eps)
	return b.Head(x, s.own(b, "shared_head_head", "output"), "token_embd")
}
