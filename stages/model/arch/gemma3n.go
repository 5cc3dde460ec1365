package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Gemma 3n, text. Papers: arXiv:2301.13310 (AltUp), arXiv:2411.07501 (LAuReL); compared with llama.cpp.
// Differs from Gemma 4: there are four streams side by side. A layer predicts each by a mixture of all, whose weights
// depend on the first, computes what becomes of the first, and corrects all by the difference. Beside attention there
// is a matrix of low rank; the gates of the first layers are 0 but for the highest.
func gemma3n(p *params, b *ir.Builder) {
	g := p.gemma3n(b)
	final := float32(p.positiveOr("final_logit_softcapping", 30))

	embedding := b.Embed("token_embd", g.vocab, g.width)
	inputs := g.layerInputs(b, embedding)
	x := b.Scale(embedding, g.embeddingScale())
	rest := b.HeadLinear(b.HeadJoin(b.HeadJoin(x, x, 1), x, 1), "altup_proj", streams-1, g.width)
	x = b.Stream(b.HeadJoin(x, b.Level(rest, x), 1))
	filled := map[bool]ir.Value{} // by local: the last Attend that stores
	for l := range g.layers {
		b.Layer(l)
		b.FFN() // also attention: a mix segment would have to carry two values
		predicted := g.predict(b, x)
		active := predicted[0]
		n := b.RMSNorm(active, "attn_norm", g.eps)
		low := b.Linear(b.Linear(n, "laurel_l", rank), "laurel_r", g.width)
		beside := b.Add(b.RMSNorm(low, "laurel_post_norm", g.eps), n)
		o := b.Add(b.RMSNorm(g.attend(b, n, l, filled), "post_attention_norm", g.eps), active)
		o = b.Scale(b.Add(o, beside), math.Sqrt2/2)
		f := g.sparse(b, b.RMSNorm(o, "ffn_norm", g.eps), l)
		o = b.Add(b.RMSNorm(f, "post_ffw_norm", g.eps), o)
		x = g.correct(b, predicted, o, b.Slice(inputs, l*g.each, g.each))
	}
	x = b.Rows(x)
	first := b.Slice(x, 0, g.width)
	rest = b.HeadLinear(b.Slice(x, g.width, (streams-1)*g.width), "altup_unembd_proj", streams-1, g.width)
	rest = b.Level(rest, first)
	for i := range streams - 1 {
		first = b.Add(first, b.Slice(rest, i*g.width, g.width))
	}
	n := b.RMSNorm(b.Scale(first, 1.0/streams), "output_norm", g.eps)
	b.Logits(b.SoftCap(b.Head(n, "output", "token_embd"), final))
}

// Of Gemma 3n, files do not carry these.
const (
	streams    = 4
	rank       = 64        // of the matrix beside attention
	cutLayers  = 10        // the first ones, whose gates are cut
	deviations = 1.6448536 // of a normal distribution, of which 95 % lie below
)

// gemma3n reads what Gemma 4's layers have too.
func (p *params) gemma3n(b *ir.Builder) gemma4Shape {
	const storing, each = 20, 256
	g := gemma4Shape{shape: p.dense("attention.layer_norm_rms_epsilon")}
	g.local = p.local(g.layers, 5)
	global := p.rope(&g.shape, halves, 1e6)
	near := g.newRope(halves, global.args.Dims, p.positiveOr("rope.freq_base_swa", 10000))
	g.kinds = map[bool]gemma4Heads{true: {g.kDim, p.window(), near}, false: {g.kDim, 0, global}}
	for range g.layers {
		g.kv = append(g.kv, g.kvHeads)
	}
	if g.storing = min(g.layers, storing); p.has("attention.shared_kv_layers") {
		g.storing = p.storing(&g)
	}
	g.each = p.countOr("embedding_length_per_layer_input", maxWidth, each)
	return g
}

// modalities are what the mixtures of a layer depend on.
func (g *gemma4Shape) modalities(b *ir.Builder, x ir.Value) ir.Value {
	n := b.Scale(b.RMSNorm(x, "altup_router_norm", g.eps), 1/float32(g.width))
	return b.SoftCap(b.Linear(n, "altup_router", streams), 1) // tanh
}

// predict is each stream and a mixture of all.
func (g *gemma4Shape) predict(b *ir.Builder, x ir.Value) (predicted []ir.Value) {
	weights := b.Linear(g.modalities(b, b.Slice(x, 0, g.width)), "altup_predict_coef", streams*streams)
	for i := range streams {
		y, mixed := b.Slice(x, i*g.width, g.width), b.Mul(x, b.Slice(weights, i*streams, streams))
		for j := range streams {
			y = b.Add(y, b.Slice(mixed, j*g.width, g.width))
		}
		predicted = append(predicted, y)
	}
	return predicted
}

// sparse is the feed-forward network of a layer.
func (g *gemma4Shape) sparse(b *ir.Builder, x ir.Value, l int) ir.Value {
	gate := b.Linear(x, "ffn_gate", g.shape.ffn)
	if l < cutLayers {
		gate = b.Exceed(gate, deviations)
	}
	return b.Linear(b.GLU(ir.GELU, gate, b.Linear(x, "ffn_up", g.shape.ffn)), "ffn_down", g.width)
}

// correct adds to each stream by how much the first is other than predicted, times a factor, and to all but the first
// what the layer's own input gives.
func (g *gemma4Shape) correct(b *ir.Builder, predicted []ir.Value, active, own ir.Value) ir.Value {
	news := b.Add(active, b.Scale(predicted[0], -1))
	factors := b.Linear(g.modalities(b, active), "altup_correct_coef", streams)
	corrected := make([]ir.Value, streams)
	for i, y := range predicted {
		corrected[i] = b.Add(b.Add(y, news), b.Mul(news, b.Slice(factors, i, 1)))
	}
	seen := b.Affine(corrected[0], "altup_correct_scale.weight", g.width, "", 0)
	own = b.GLU(ir.GELU, b.Linear(seen, "inp_gate", g.each), own)
	own = b.RMSNorm(b.Linear(own, "proj", g.width), "post_norm", g.eps)
	x := corrected[0]
	for _, y := range corrected[1:] {
		x = b.HeadJoin(x, b.Add(y, own), 1)
	}
	return x
}
