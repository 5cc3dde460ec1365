package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Qwen 4, as its files of preview have it. Compared with llama.cpp.
// Differs from Qwen 3.5 with experts: there are several streams side by side (hyper); gates of the delta networks are
// sigmoids; one layer adds what a table knows of the last tokens (grams). Attention is to what an indexer chooses: see
// within.
func qwen4exp(p *params, b *ir.Builder) {
	s := p.mixed("attention.layer_norm_rms_epsilon")
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	shared := p.countOr("expert_shared_feed_forward_length", maxFFN, m.ffn)
	r := p.rope(&s, halves, 10000)
	d := p.states()
	d.scan.Scale, d.scan.Tiled, d.gate = float32(1/math.Sqrt(float64(d.scan.KDim))), true, ir.Sigmoid
	h := p.hyper(&s)
	if p.options.Head {
		p.faultf("%s: heads of models with several streams are not supported", p.key(nextKey))
		return
	}
	recurs := p.recurrent(s.layers, 4)
	p.indexed(b, s.layers)
	x, layers := p.trunk(&s, b)
	g := p.grams(b, &h)
	x = b.Stream(h.spread(b, x, nil))
	for _, l := range layers {
		b.Layer(l)
		if l == g.layer {
			x = b.Add(x, g.know(b, &h, x))
		}
		n, by := h.mix(b, x, "hc_attn")
		if recurs(l) {
			n = d.deltaNet(b, n, &s)
		} else {
			n = s.gatedAttend(b, n, r)
		}
		x = b.Add(x, h.spread(b, n, by))
		b.FFN()
		n, by = h.mix(b, x, "hc_ffn")
		x = b.Add(x, h.spread(b, m.besideGated(b, n, shared), by))
	}
	n, _ := h.mix(b, b.Rows(x), "output_hc")
	b.Head(n, "output", "token_embd")
}

// indexed keeps models whose layers attend to what an indexer chooses to as many positions as it does.
func (p *params) indexed(b *ir.Builder, layers int) {
	const name = "attention.compress_ratios"
	if !p.has(name) {
		p.ignoreIndexers(b, layers)
		return
	}
	for _, ratio := range p.byLayerFrom(0, name, layers, maxContext) {
		if ratio > 0 {
			p.within(b, layers, 1)
			return
		}
	}
	p.ignoreIndexers(b, layers)
}

// grams is what a model knows of its last tokens: rows of a table that hashes of them name, read by a layer.
type grams struct {
	layer  int // −1: no layer does
	kernel int // positions of its convolution
	rows   ir.Value
	args   ir.GramArgs
}

// grams reads the hashes, and records the rows, with the embedding.
func (p *params) grams(b *ir.Builder, h *hyper) grams {
	g := grams{layer: -1}
	if !p.has("ple.layers") {
		return g
	}
	layers := p.numbers("ple.layers", 1, 1)
	if g.layer = int(min(layers[0], maxLayers)); g.layer >= h.layers {
		p.faultf("%s: is layer %d of %d", p.key("ple.layers"), layers[0], h.layers)
	}
	tokens := p.integer("ple.ngram_size", 2, 16)
	g.args.Each, g.kernel = p.count("ple.heads_per_ngram", 1024), p.integer("ple.conv_kernel", 2, maxHeadDim)
	g.args.End = int32(p.integer("ple.eos_token_id", 0, h.vocab-1))
	width, hashes := p.count("embedding_length_per_layer_input", maxWidth), (tokens-1)*g.args.Each
	if width*hashes != h.width {
		p.faultf("%s: is %d, want %s, %d, divided by %d hashes", p.key("embedding_length_per_layer_input"), width,
			p.key("embedding_length"), h.width, hashes)
	}
	g.args.Factors = p.numbers("ple.layer_multipliers", tokens, 0)
	g.args.Sizes, g.args.Firsts = p.numbers("ple.head_vocab_sizes", hashes, 1), p.numbers("ple.head_offsets", hashes, 0)
	rows := uint64(0)
	for i, size := range g.args.Sizes {
		if end := g.args.Firsts[i] + size; size > math.MaxInt32 || end > math.MaxInt32 || end < size {
			p.faultf("%s: hash %d names rows from %d on, %d in all: too many", p.key("ple.head_vocab_sizes"), i,
				g.args.Firsts[i], size)
			return g
		}
		rows = max(rows, g.args.Firsts[i]+size)
	}
	seen := b.Token()
	last := seen
	for range tokens - 1 {
		last = b.Previous(last)
		seen = b.HeadJoin(seen, last, 1)
	}
	g.rows = b.Gram(seen, "per_layer_token_embd", int(rows), width, g.args)
	return g
}

// numbers reads the first n whole numbers of a list, at least so large.
func (p *params) numbers(name string, n int, least uint64) []uint64 {
	value, _ := p.meta.Get(p.key(name))
	all, ok := value.([]uint64)
	if !ok {
		list, err := p.meta.Ints(p.key(name))
		if err != nil {
			p.faults = append(p.faults, err)
		}
		for _, x := range list {
			all = append(all, uint64(x))
		}
	}
	fault := len(all) < n
	if fault {
		p.faultf("%s: has %d numbers, want %d", p.key(name), len(all), n)
	}
	read := make([]uint64, n)
	for i := range read {
		if read[i] = least; i < len(all) && all[i] >= least {
			read[i] = all[i]
		} else if !fault {
			p.faultf("%s: number %d is %d, want %d or more", p.key(name), i, all[i], least)
		}
	}
	return read
}

// know is what the layer adds: what the rows give, for each stream times how well they fit it, and that convolved over
// every so many positions.
func (g *grams) know(b *ir.Builder, h *hyper, x ir.Value) ir.Value {
	key, value := b.Linear(g.rows, "ple_key", h.all()), b.Linear(g.rows, "ple_value", h.width)
	fit := b.HeadDot(h.norm(b, key, "ple_norm_key"), h.norm(b, x, "ple_norm_query"), h.streams)
	gates := b.Act(ir.Sigmoid, b.Act(ir.Root, b.Scale(fit, float32(1/math.Sqrt(float64(h.width))))))
	var by []ir.Value
	for i := range h.streams {
		by = append(by, b.Slice(gates, i, 1))
	}
	y := h.spread(b, value, by)
	wide := b.SpreadConv(h.norm(b, y, "ple_norm_conv"), "ple_conv1d", g.kernel, len(g.args.Factors))
	return b.Add(y, b.Act(ir.SiLU, wide))
}
