package arch

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// DeepSeek V4. Compared with llama.cpp.
// Differs from DeepSeek V3: there are several streams side by side, which blocks read by sigmoids, and which each block
// mixes by a balanced matrix (balanced); all heads read one key, which is the value, too, within a window, and in most
// layers what was compressed of all chunks of positions; what they read is turned back; the first layers' experts are
// named by a table of tokens. Indexers choose among compressed positions: see within.
func deepseek4(p *params, b *ir.Builder) {
	s := p.mixed("attention.layer_norm_rms_epsilon")
	all := s.layers
	c := p.compressed(&s)
	m, hashed := p.rooted(&s, all)
	limits, sharedLimits := p.limits("swiglu_clamp_exp", all), p.limits("swiglu_clamp_exp", all)
	if p.has("swiglu_clamp_shexp") {
		sharedLimits = p.limits("swiglu_clamp_shexp", all)
	}
	h := p.balanced(&s)
	if p.options.Head {
		p.faultf("%s: heads of models with several streams are not supported", p.key(nextKey))
		return
	}
	x, layers := p.trunk(&s, b)
	c.ignoreIndexers(p, b)
	var told []ir.Value
	for l := range min(hashed, len(layers)) {
		b.Ahead(l)
		told = append(told, b.Lookup("ffn_gate_tid2eid", m.route.Used))
	}
	b.Within("")
	x = b.Stream(h.spread(b, x, nil))
	for _, l := range layers {
		b.Layer(l)
		n, mixed, by := h.read(b, x, "hc_attn")
		x = b.Add(mixed, h.spread(b, c.attend(b, b.RMSNorm(n, "attn_norm", s.eps), c.ratios[l]), by))
		b.FFN()
		n, mixed, by = h.read(b, x, "hc_ffn")
		n = b.RMSNorm(n, "ffn_norm", s.eps)
		m.limit, m.sharedLimit = limits[l], sharedLimits[l]
		shared := m.all(b, n)
		var weights ir.Value
		if logits := b.Linear(n, "ffn_gate_inp", m.experts); l < len(told) {
			weights = b.RouteTold(logits, told[l], m.route)
		} else {
			weights = b.Route(logits, "exp_probs_b", m.route)
		}
		x = b.Add(mixed, h.spread(b, b.Add(m.chosen(b, n, weights), shared), by))
	}
	n, _ := h.couple(b, b.Rows(x), "output_hc", 1)
	b.Head(b.RMSNorm(n, "output_norm", s.eps), "output", "token_embd")
}

// rooted is a mixture whose scores are roots, and how many layers' experts are named by tokens.
func (p *params) rooted(s *shape, layers int) (mixture, int) {
	const root = 4 // llama.cpp's number
	p.integer("expert_gating_func", root, root)
	m := p.mixture(s, ir.RouteArgs{Scoring: ir.SqrtSoftplus})
	m.route.Normalise = p.flag("expert_weights_norm")
	m.shared, m.act = p.count("expert_shared_count", maxExperts)*m.ffn, ir.ClippedSiLU
	return m, p.integer("hash_layer_count", 0, layers)
}

// compressed is attention to a window, and to what was compressed of chunks of so many positions, by layer: their keys
// are means. The two are one softmax, made of both by the logarithms of their sums.
type compressed struct {
	*shape
	ratios         []int
	queryRank      int
	still          int // features of a head that RoPE leaves alone, before those that it turns
	groups, rank   int // of heads, which a matrix each brings to so many features
	near, far      rope
	nearby, chunks ir.AttendArgs
}

func (p *params) compressed(s *shape) *compressed {
	const overlapping, apart = 4, 128
	c := &compressed{shape: s, queryRank: p.count("attention.q_lora_rank", maxWidth),
		groups: p.count("attention.output_group_count", maxHeads), rank: p.count("attention.output_lora_rank", maxWidth),
		ratios: p.byLayerFrom(0, "attention.compress_ratios", s.layers, apart)}
	for l, ratio := range c.ratios {
		if ratio != 0 && ratio != overlapping && ratio != apart {
			p.faultf("%s: is %d for layer %d, want 0, %d or %d", p.key("attention.compress_ratios"), ratio, l, overlapping, apart)
			c.ratios[l] = 0
		}
	}
	if s.heads%c.groups != 0 {
		p.faultf("%s: is %d, want a divisor of %s, %d", p.key("attention.output_group_count"), c.groups,
			p.key("attention.head_count"), s.heads)
		c.groups = 1
	}
	turned := *s
	turned.kDim = p.count("rope.dimension_count", maxHeadDim)
	if c.still = s.kDim - turned.kDim; c.still <= 0 {
		p.faultf("%s: is %d, want less than %s, %d", p.key("rope.dimension_count"), turned.kDim,
			p.key("attention.key_length"), s.kDim)
		turned.kDim, c.still = 2, max(s.kDim-2, 1)
	}
	c.near = turned.newRope(neighbours, turned.kDim&^1, p.positiveOr("rope.freq_base", 10000))
	c.far = p.scaled(turned.newRope(neighbours, turned.kDim&^1, p.positive("attention.compress_rope_freq_base")))
	c.far.args.Mscale = 1
	c.nearby = ir.AttendArgs{Heads: s.heads, KVHeads: 1, KDim: s.kDim, VDim: s.kDim, Window: p.window(),
		Scale: float32(1 / math.Sqrt(float64(s.kDim)))}
	c.chunks = c.nearby
	c.chunks.Window = 0
	return c
}

// ignoreIndexers keeps the model to as many positions as its indexers choose, and leaves their tensors alone.
func (c *compressed) ignoreIndexers(p *params, b *ir.Builder) {
	const overlapping = 4
	for l, ratio := range c.ratios {
		if ratio != overlapping {
			continue
		}
		if l < c.layers {
			p.within(b, c.layers, overlapping)
		}
		for _, name := range []string{"kv", "gate", "ape", "norm"} {
			b.Ignore(fmt.Sprintf("blk.%d.indexer_compressor_%s.weight", l, name))
		}
	}
}

// turn turns the last features of each of so many heads.
func (c *compressed) turn(b *ir.Builder, x ir.Value, r rope, heads int) ir.Value {
	turned := r.turn(b, b.HeadSlice(x, heads, c.still, c.kDim-c.still))
	return b.HeadJoin(b.HeadSlice(x, heads, 0, c.still), turned, heads)
}

func (c *compressed) attend(b *ir.Builder, x ir.Value, ratio int) ir.Value {
	r := c.near
	if ratio > 0 {
		r = c.far
	}
	q := b.RMSNorm(b.Linear(x, "attn_q_a", c.queryRank), "attn_q_a_norm", c.eps)
	q = c.turn(b, b.BareHeadNorm(b.Linear(q, "attn_q_b", c.heads*c.kDim), c.kDim, c.eps), r, c.heads)
	kv := c.turn(b, b.RMSNorm(b.Linear(x, "attn_kv", c.kDim), "attn_kv_a_norm", c.eps), r, 1)
	nearby := c.nearby
	nearby.Sums = ratio > 0
	y := b.AttendSinks(q, kv, kv, "attn_sinks", nearby)
	if ratio > 0 {
		k := c.compress(b, x, ratio)
		chunks := c.chunks
		chunks.Sums, chunks.Every = true, ratio
		y = c.both(b, y, b.Attend(q, k, k, chunks))
	}
	r.args.Freq = negative(r.args.Freq)
	y = b.HeadLinear(c.turn(b, y, r, c.heads), "attn_output_a", c.groups, c.rank)
	return b.Linear(y, "attn_output_b", c.width)
}

// compress is the key of a chunk of so many positions, at its last one; it is turned as the first one is.
func (c *compressed) compress(b *ir.Builder, x ir.Value, ratio int) ir.Value {
	width := c.kDim
	if ratio == 4 { // with the chunk before
		width *= 2
	}
	k := b.Compress(b.Linear(x, "attn_compressor_gate", width), b.Linear(x, "attn_compressor_kv", width),
		"attn_compressor_ape.weight", c.kDim, ratio)
	r := c.far
	r.args.Shift = 1 - ratio
	return c.turn(b, b.RMSNorm(k, "attn_compressor_norm", c.eps), r, 1)
}

// both is attention to what x and y attended to, which have the logarithms of their sums.
func (c *compressed) both(b *ir.Builder, x, y ir.Value) ir.Value {
	n := c.heads * c.kDim
	more := b.Add(b.Slice(x, n, c.heads), b.Scale(b.Slice(y, n, c.heads), -1))
	return joined(b, b.Slice(x, 0, n), b.Slice(y, 0, n), more)
}

// joined is what attention to two parts gives, of what it gives to each: more is by how much the logarithm of x's sum
// exceeds that of y's.
func joined(b *ir.Builder, x, y, more ir.Value) ir.Value {
	return b.Add(b.Mul(x, b.Act(ir.Sigmoid, more)), b.Mul(y, b.Act(ir.Sigmoid, b.Scale(more, -1))))
}

func negative(all []float64) []float64 {
	out := make([]float64, len(all))
	for i, x := range all {
		out[i] = -x
	}
	return out
}

// balanced is streams that each block mixes by a matrix, nearly doubly stochastic, which follows from all of them, as
// do the sigmoids by which it reads and writes (manifold-constrained hyper-connections, arXiv:2512.24880).
type balanced struct {
	coupled
	times int // that rows and columns are divided by their sums
}

func (p *params) balanced(s *shape) balanced {
	h := balanced{times: p.integer("hyper_connection.sinkhorn_iterations", 1, 1<<10)}
	h.hyper = hyper{shape: s, streams: p.integer("hyper_connection.count", 2, 8)}
	h.least = float32(p.positive("hyper_connection.epsilon"))
	return h
}

// read is what a block reads of the streams x, these mixed, and by what the block's result is multiplied for each.
func (h *balanced) read(b *ir.Builder, x ir.Value, name string) (read, mixed ir.Value, by []ir.Value) {
	n, square := h.streams, h.streams*h.streams
	all := b.Linear(b.BareHeadNorm(x, h.all(), h.eps), name+"_fn", (2+n)*n)
	wide := func(x ir.Value) ir.Value { // as wide as the matrix
		y := x
		for range n - 1 {
			y = b.HeadJoin(y, x, 1)
		}
		return y
	}
	three := b.HeadJoin(wide(b.Slice(all, 0, n)), wide(b.Slice(all, n, n)), 1)
	three = b.AffineHeads(b.HeadJoin(three, b.Slice(all, 2*n, square), 1), name+"_scale.weight", 3)
	all = b.HeadJoin(b.HeadJoin(b.Slice(three, 0, n), b.Slice(three, square, n), 1), b.Slice(three, 2*square, square), 1)
	all = b.Affine(all, "", 0, name+"_base.weight", 1)
	factors := b.Scale(b.Act(ir.Sigmoid, b.Slice(all, n, n)), 2)
	for i := range n {
		by = append(by, b.Slice(factors, i, 1))
	}
	read = h.sum(b, x, b.Act(ir.Sigmoid, b.Slice(all, 0, n)))
	return read, h.mixed(b, x, b.Balance(b.Slice(all, 2*n, square), h.times, h.least)), by
}

// mixed is the streams x mixed by a matrix, which has a row for each of x.
func (h *balanced) mixed(b *ir.Builder, x, matrix ir.Value) (out ir.Value) {
	for to := range h.streams {
		var stream ir.Value
		for from := range h.streams {
			part := b.Mul(b.Slice(x, from*h.width, h.width), b.Slice(matrix, from*h.streams+to, 1))
			if from > 0 {
				part = b.Add(stream, part)
			}
			stream = part
		}
		if to > 0 {
			stream = b.HeadJoin(out, stream, 1)
		}
		out = stream
	}
	return out
}
