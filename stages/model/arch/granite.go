package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Granite 3 and 4, dense or with experts, and with windows (granite_swa). Checked against transformers,
// modeling_granite.py and modeling_granitemoe.py; granite_swa compared with llama.cpp.
// Differs from Llama by four multipliers: of embeddings, scores, what blocks add to the residual stream, and (a
// divisor) logits. granite_swa has sinks, and the file says which layers have a window, and which have RoPE.
func granite(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	feed := p.feed(&s, ir.RouteArgs{Scoring: ir.SoftmaxChosen})
	r := p.rope(&s, neighbours, 10000)
	a := s.attention()
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))
	m := p.multipliers(1, 1, 1)
	window, local := p.window(), p.local(s.layers, 1)
	turns := p.flags("attention.rope_pattern", s.layers)

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), m.embedding)
	for l := range s.layers {
		turn := r
		if a.Window = 0; local(l) {
			a.Window = window
		}
		if !turns(l) {
			turn = rope{}
		}
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := turn.turn(b, b.Linear(n, "attn_q", s.heads*s.kDim))
		k := turn.turn(b, b.Linear(n, "attn_k", s.kvHeads*s.kDim))
		o := attendSinking(b, q, k, b.Linear(n, "attn_v", s.kvHeads*s.vDim), a)
		x = b.Add(x, b.Scale(b.Linear(o, "attn_output", s.width), m.residual))
		b.FFN()
		f := feed(b, b.RMSNorm(x, "ffn_norm", s.eps))
		x = b.Add(x, b.Scale(f, m.residual))
	}
	b.Logits(b.Scale(s.head(b, x), m.logits))
}

// multipliers are what embeddings, blocks' outputs and logits are multiplied by.
type multipliers struct{ embedding, residual, logits float32 }

// multipliers reads them; the arguments hold where the file does not say. The last one divides, as in files.
func (p *params) multipliers(embedding, residual, logits float64) multipliers {
	return multipliers{
		embedding: float32(p.positiveOr("embedding_scale", embedding)),
		residual:  float32(p.positiveOr("residual_scale", residual)),
		logits:    float32(1 / p.positiveOr("logit_scale", logits)),
	}
}
