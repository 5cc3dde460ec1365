package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Ministral 3, and others whose queries sharpen with their position. After transformers, modeling_ministral3.py;
// compared with llama.cpp.
// Differs from Llama: queries are multiplied by a factor that grows with the logarithm of how many original contexts
// lie before them.
func mistral3(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	feed := p.feed(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	r := p.rope(&s, neighbours, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	a, t := s.attention(), p.tempering()
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := t.sharpen(b, r.turn(b, b.Linear(n, "attn_q", s.heads*s.kDim)))
		k := r.turn(b, b.Linear(n, "attn_k", s.kvHeads*s.kDim))
		v := b.Linear(n, "attn_v", s.kvHeads*s.vDim)
		x = b.Add(x, b.Linear(b.Attend(q, k, v, a), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, feed(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}

// tempering is by how much queries sharpen, and after how many positions they do.
type tempering struct {
	factor float32 // 0: they do not
	every  int
}

func (p *params) tempering() tempering {
	return tempering{float32(p.optional("attention.temperature_scale")),
		p.countOr("attention.temperature_length", maxContext, p.originalContext())}
}

func (t tempering) sharpen(b *ir.Builder, q ir.Value) ir.Value {
	if t.factor == 0 {
		return q
	}
	return b.Temper(q, t.factor, t.every, 0)
}
