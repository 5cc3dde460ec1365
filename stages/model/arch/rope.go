package arch

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// pairing says which features of a head RoPE turns together.
type pairing bool

const (
	halves     pairing = false // i and i+dims/2, as transformers computes
	neighbours pairing = true  // 2i and 2i+1: GGUF files of llama's kin have Q and K permuted to it
)

// rope is a family's rotary embedding. A rope without dimensions turns nothing.
type rope struct {
	args    ir.RoPEArgs // without Heads
	base    float64
	factors string // tensor of divisors of the frequencies; empty for none
}

func (r *rope) turn(b *ir.Builder, x ir.Value) ir.Value {
	if r.args.Dims == 0 {
		return x
	}
	return b.Rope(x, r.args, r.factors)
}

// newRope makes a rope with the frequencies base^(−2i/dims).
func (s *shape) newRope(pairs pairing, dims int, base float64) rope {
	freq := make([]float64, dims/2)
	for i := range freq {
		freq[i] = math.Pow(base, -2*float64(i)/float64(dims))
	}
	return rope{base: base, args: ir.RoPEArgs{
		HeadDim: s.kDim, Dims: dims, Interleaved: bool(pairs), Freq: freq, Mscale: 1,
	}}
}

// rope reads base, dimensions and scaling.
func (p *params) rope(s *shape, pairs pairing, base float64) rope {
	return p.scaled(p.plainRope(s, pairs, base))
}

// plainRope reads base and dimensions, and leaves the scaling out.
func (p *params) plainRope(s *shape, pairs pairing, base float64) rope {
	dims := p.countOr("rope.dimension_count", maxHeadDim, s.kDim)
	if dims > s.kDim || dims%2 != 0 {
		p.faultf("%s: is %d, want an even number of at most the head size, %d",
			p.key("rope.dimension_count"), dims, s.kDim)
		dims = 2
	}
	return s.newRope(pairs, dims, p.positiveOr("rope.freq_base", base))
}

// scaled folds rope.scaling.* into frequencies and magnitude. Llama 3's scaling has no keys: its converters write
// it as divisors, the tensor rope_freqs. LongRoPE's are tensors too, and attn_factor its magnitude.
func (p *params) scaled(r rope) rope {
	r.args.Freq = slices.Clone(r.args.Freq)
	kind := "linear" // what a factor alone means
	if p.has("rope.scaling.type") {
		text, err := p.meta.String(p.key("rope.scaling.type"))
		if err != nil {
			p.faults = append(p.faults, err)
		}
		kind = text
	}
	switch kind {
	case "none", "longrope":
	case "linear":
		factor := p.factor()
		for i := range r.args.Freq {
			r.args.Freq[i] /= factor
		}
	case "yarn":
		p.yarn(&r)
	default:
		p.faultf("%s: is %.40q, want none, linear, yarn or longrope", p.key("rope.scaling.type"), kind)
	}
	r.args.Mscale *= float32(p.positiveOr("rope.scaling.attn_factor", 1))
	return r
}

// factor is the context divided by that of training. Old files call it scale_linear.
func (p *params) factor() float64 {
	for _, name := range []string{"rope.scaling.factor", "rope.scale_linear"} {
		if x, err := p.meta.Float(p.key(name)); err == nil && x != 0 {
			return p.positive(name)
		}
	}
	return 1
}

// originalContext is the number of positions before any scaling.
func (p *params) originalContext() int {
	return p.countOr("rope.scaling.original_context_length", maxContext, p.context)
}

// yarn mixes, pair by pair, the frequency of training (fast pairs) with the interpolated one (slow pairs).
// Source: arXiv:2309.00071, as computed by transformers, modeling_rope_utils.py.
func (p *params) yarn(r *rope) {
	factor := p.factor()
	dims, context := float64(r.args.Dims), float64(p.originalContext())
	// pair is the index, not whole, of the pair that turns n times within the original context.
	pair := func(n float64) float64 {
		return dims * math.Log(context/(n*2*math.Pi)) / (2 * math.Log(r.base))
	}
	low := math.Max(math.Floor(pair(p.positiveOr("rope.scaling.yarn_beta_fast", 32))), 0)
	high := math.Min(math.Ceil(pair(p.positiveOr("rope.scaling.yarn_beta_slow", 1))), dims-1)
	if low == high {
		high += 0.001
	}
	extrapolate := p.positiveOr("rope.scaling.yarn_ext_factor", 1)
	for i, f := range r.args.Freq {
		slow := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
		mix := (1 - slow) * extrapolate
		r.args.Freq[i] = f/factor*(1-mix) + f*mix
	}
	r.args.Mscale = float32(p.yarnMagnitude(factor))
}

// yarnMagnitude is what cos and sin are multiplied by, which scales q·k by its square.
func (p *params) yarnMagnitude(factor float64) float64 {
	if p.has("rope.scaling.yarn_attn_factor") {
		return p.positive("rope.scaling.yarn_attn_factor")
	}
	magnitude := func(m float64) float64 {
		if factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(factor) + 1
	}
	// yarn_log_multiplier is transformers' mscale_all_dim, with mscale 1.
	if m := p.optional("rope.scaling.yarn_log_multiplier"); m != 0 {
		return magnitude(1) / magnitude(m)
	}
	return magnitude(1)
}
