package arch

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// HRM-Text. Paper of the idea: arXiv:2506.21734; compared with llama.cpp.
// Differs from Llama: there are two stacks of layers and two streams. The low stack computes a new low stream of the
// sum of both, several times, then the high stack a new high one, all of it several times; the high one ends in logits.
// Norms have no weights, one of them ends each pass through a stack, and attention is gated by sigmoids. Each pass has
// keys and values of its own. The residual stream is what a stack computes, and the other stream beside it.
func hrmText(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	stack, passes, cycles := p.stacks(&s)
	if p.has("hrm.prefix_lm") && p.flag("hrm.prefix_lm") {
		p.faultf("%s: is true, and prompts whose rows see what follows them are not supported", p.key("hrm.prefix_lm"))
	}

	high := b.Scale(b.Embed("token_embd", s.vocab, s.width), float32(p.positiveOr("embedding_scale", 1)))
	x := b.Stream(b.HeadJoin(b.Affine(high, "", 0, "hrm.z_l_init", 1), high, 1))
	for c := range cycles * passes {
		first, pass := 0, c%passes
		if pass == passes-1 {
			first = stack
		}
		for l := range stack {
			b.Layer(c*stack + l)
			b.FFN() // also attention: a mix segment would have to carry two values
			b.Within(fmt.Sprintf("blk.%d.", first+l))
			own, other := s.bareGated(b, b.Slice(x, 0, s.width), r), b.Slice(x, s.width, s.width)
			if l == stack-1 {
				own = b.BareHeadNorm(own, s.width, s.eps)
				sum := b.Add(own, other)
				if pass >= passes-2 { // the other stream is next, or the low one, of which only the sum is left
					other = own
				}
				own = sum
			}
			x = b.HeadJoin(own, other, 1)
		}
	}
	b.Head(b.Slice(b.Rows(x), s.width, s.width), "output", "token_embd")
}

// stacks reads how many layers a stack has, how many passes a cycle, of which the last is through the high stack, and
// how many cycles there are.
func (p *params) stacks(s *shape) (stack, passes, cycles int) {
	stack = p.count("hrm.layers_per_stack", maxLayers)
	passes = p.count("hrm.l_cycles", maxLayers) + 1
	cycles = p.count("hrm.h_cycles", maxLayers)
	if stack*passes*cycles != s.layers {
		p.faultf("%s: is %d, want layers for each of %d cycles of %d passes through %d: %d", p.key("block_count"), s.layers,
			cycles, passes, stack, stack*passes*cycles)
		return 1, 2, 1
	}
	return stack, passes, cycles
}

// bareGated is a layer whose norms have no weights, and whose attention is gated.
func (s *shape) bareGated(b *ir.Builder, x ir.Value, r rope) ir.Value {
	n := b.BareHeadNorm(x, s.width, s.eps)
	gate := b.Linear(n, "attn_gate", s.heads*s.vDim)
	q, k := r.turn(b, b.Linear(n, "attn_q", s.heads*s.kDim)), r.turn(b, b.Linear(n, "attn_k", s.kvHeads*s.kDim))
	o := b.GLU(ir.Sigmoid, gate, b.Attend(q, k, b.Linear(n, "attn_v", s.kvHeads*s.vDim), s.attention()))
	x = b.Add(x, b.Linear(o, "attn_output", s.width))
	return b.Add(x, s.swiglu(b, b.BareHeadNorm(x, s.width, s.eps)))
}
