package arch

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Gemma 4, text. Checked against transformers, modeling_gemma4.py.
// Differs from Gemma 3: values are normalised, without weights, and scores are not scaled; heads of global layers have
// sizes and a number of their own, and few of their features turn; where a file has no matrix for values, keys are
// values. The last layers attend to what the last of their kind before them stored. Small models give each layer an
// input of its own, from another table and from the embedding; every layer ends with a factor. Experts come beside the
// dense network, and their router sees the stream.
func gemma4(p *params, b *ir.Builder) {
	g := p.gemma4(b)
	final := float32(p.optional("final_logit_softcapping"))

	embedding := b.Embed("token_embd", g.vocab, g.width)
	inputs := g.layerInputs(b, embedding)
	x := b.Scale(embedding, g.embeddingScale())
	filled := map[bool]ir.Value{} // by local: the last Attend that stores
	for l := range g.layers {
		b.Layer(l)
		o := g.attend(b, b.RMSNorm(x, "attn_norm", g.eps), l, filled)
		x = b.Add(x, b.RMSNorm(o, "post_attention_norm", g.eps))
		b.FFN()
		own := inputs
		if g.each > 0 {
			own = b.Slice(inputs, l*g.each, g.each)
		}
		x = b.Add(x, b.RMSNorm(g.feed(b, x, l), "post_ffw_norm", g.eps))
		if g.each > 0 {
			own = b.GLU(ir.GELU, b.Linear(x, "inp_gate", g.each), own)
			x = b.Add(x, b.RMSNorm(b.Linear(own, "proj", g.width), "post_norm", g.eps))
		}
		if b.Has("layer_output_scale.weight") {
			x = b.Affine(x, "layer_output_scale.weight", 1, "", 0)
		}
	}
	b.Logits(b.SoftCap(g.head(b, x), final))
}

// gemma4Shape is what differs from layer to layer.
type gemma4Shape struct {
	shape
	local   func(layer int) bool
	kinds   map[bool]gemma4Heads // by local
	kv, ffn []int                // by layer: heads of K and V, and features of the dense network
	storing int                  // layers that store keys and values, the first ones; the others attend to theirs
	each    int                  // features of a layer's own input; 0: it has none
	mixture *mixture             // nil: the model is dense
}

// gemma4Heads is the attention of layers of a kind.
type gemma4Heads struct {
	dim, window int
	rope        rope
}

func (p *params) gemma4(b *ir.Builder) gemma4Shape {
	g := gemma4Shape{shape: p.stream("attention.layer_norm_rms_epsilon")}
	g.local = p.local(g.layers, 6)
	g.kv = p.byLayer("attention.head_count_kv", g.layers, maxHeads)
	g.ffn = p.byLayer("feed_forward_length", g.layers, maxFFN)
	g.kDim = p.count("attention.key_length_swa", maxHeadDim)
	dims := p.countOr("rope.dimension_count_swa", maxHeadDim, g.kDim)
	if dims > g.kDim || dims%2 != 0 {
		p.faultf("%s: is %d, want an even number of at most %s, %d", p.key("rope.dimension_count_swa"), dims,
			p.key("attention.key_length_swa"), g.kDim)
		dims = 2
	}
	near := g.newRope(halves, dims, p.positiveOr("rope.freq_base_swa", 10000))
	g.kinds = map[bool]gemma4Heads{true: {g.kDim, p.window(), near}}
	g.kDim = p.count("attention.key_length", maxHeadDim)
	far := p.rope(&g.shape, halves, 1e6)
	if b.Has("rope_freqs.weight") {
		far.factors = "rope_freqs.weight" // those of pairs that do not turn are huge
	}
	g.kinds[false] = gemma4Heads{g.kDim, 0, far}
	g.storing = p.storing(&g)
	if p.has("embedding_length_per_layer_input") {
		g.each = p.integer("embedding_length_per_layer_input", 0, maxWidth)
	}
	if p.hasExperts() {
		m := p.mixture(&g.shape, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
		m.act, g.mixture = ir.GELU, &m
		if g.each > 0 {
			p.faultf("%s: is %d, want 0: layers with experts have no inputs of their own",
				p.key("embedding_length_per_layer_input"), g.each)
		}
	}
	return g
}

// storing is how many layers have keys and values of their own. Each of the others needs one of its kind among them.
func (p *params) storing(g *gemma4Shape) int {
	const name = "attention.shared_kv_layers"
	if !p.has(name) {
		return g.layers
	}
	storing, has := g.layers-p.integer(name, 0, g.layers-1), map[bool]bool{}
	for l := range g.layers {
		has[g.local(l)] = has[g.local(l)] || l < storing
		if l >= storing && !has[g.local(l)] {
			p.faultf("%s: layer %d has no layer of its kind before it that could share", p.key(name), l)
			return g.layers
		}
	}
	return storing
}

// layerInputs is what each layer is given besides the stream, side by side.
func (g *gemma4Shape) layerInputs(b *ir.Builder, embedding ir.Value) ir.Value {
	if g.each == 0 {
		return embedding
	}
	return g.beside(b, embedding, func() ir.Value { return b.Lookup(gemma4Table, g.layers*g.each) })
}

// gemma4Table has what layers are given of a token.
const gemma4Table = "per_layer_token_embd"

// beside makes the inputs of layers of an embedding and of what the table has of its token. The embedding is not scaled
// here, as its product would be divided by the same factor.
func (g *gemma4Shape) beside(b *ir.Builder, embedding ir.Value, found func() ir.Value) ir.Value {
	made := b.Linear(embedding, "per_layer_model_proj", g.layers*g.each)
	made = b.HeadNorm(made, "per_layer_proj_norm", g.each, g.eps)
	return b.Scale(b.Add(made, b.Scale(found(), float32(math.Sqrt(float64(g.each))))), math.Sqrt2/2)
}

func (g *gemma4Shape) attend(b *ir.Builder, x ir.Value, l int, filled map[bool]ir.Value) ir.Value {
	s, local := g.shape, g.local(l)
	kind := g.kinds[local]
	s.kvHeads, s.kDim, s.vDim = g.kv[l], kind.dim, kind.dim
	a := s.attention()
	a.Scale, a.Window = 1, kind.window
	q := kind.rope.turn(b, b.HeadNorm(b.Linear(x, "attn_q", s.heads*s.kDim), "attn_q_norm", s.kDim, s.eps))
	if l >= g.storing {
		for _, unused := range []string{"attn_k.", "attn_k_norm.", "attn_v."} {
			b.Ignore(fmt.Sprintf("blk.%d.%s", l, unused))
		}
		return b.Linear(b.AttendShared(q, filled[local], a), "attn_output", s.width)
	}
	k := b.Linear(x, "attn_k", s.kvHeads*s.kDim)
	v := k
	if b.Has("attn_v.weight") {
		v = b.Linear(x, "attn_v", s.kvHeads*s.kDim)
	}
	k = kind.rope.turn(b, b.HeadNorm(k, "attn_k_norm", s.kDim, s.eps))
	filled[local] = b.Attend(q, k, b.BareHeadNorm(v, s.kDim, s.eps), a)
	return b.Linear(filled[local], "attn_output", s.width)
}

// feed is the dense network of the stream, and what its experts add.
func (g *gemma4Shape) feed(b *ir.Builder, x ir.Value, l int) ir.Value {
	s := g.shape
	s.ffn = g.ffn[l]
	dense := s.gated(b, b.RMSNorm(x, "ffn_norm", s.eps), ir.GELU)
	m := g.mixture
	if m == nil {
		return dense
	}
	dense = b.RMSNorm(dense, "post_ffw_norm_1", s.eps)
	seen := b.Scale(b.RMSNormBy(x, "ffn_gate_inp.scale", s.eps), 1/s.embeddingScale())
	weights := b.RouteScaled(b.Linear(seen, "ffn_gate_inp", m.experts), "ffn_down_exps.scale", m.route)
	gate, up := "ffn_gate_exps", "ffn_up_exps"
	if b.Has("ffn_gate_up_exps.weight") {
		gate, up = "ffn_gate_up_exps", "ffn_gate_up_exps"
	}
	n := b.RMSNorm(x, "pre_ffw_norm_2", s.eps)
	y := b.Experts(n, weights, gate, up, "ffn_down_exps", m.ffn, m.route.Used, m.act)
	return b.Add(dense, b.RMSNorm(y, "post_ffw_norm_2", s.eps))
}
