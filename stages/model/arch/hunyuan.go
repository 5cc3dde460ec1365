package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// HunYuan, version 1, and its model of pictures (hunyuan_vl), text. The dense models were checked against
// transformers, modeling_hunyuan_v1_dense.py, those with experts (a softmax over all, normalised, and a network that
// all rows share) compared with llama.cpp.
// Differs from Qwen 3: every head of Q and K is RMS-normalised after RoPE, not before. Converters fold the scaling of
// long contexts into RoPE's base; of hunyuan_vl they may write the factor, and RoPE has sections, which all turn by a
// text's positions.
func hunyuan(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	if alpha := p.optional("rope.scaling.alpha"); alpha != 0 && p.arch == "hunyuan_vl" && s.kDim > 2 {
		dims := float64(s.kDim)
		r = s.newRope(halves, r.args.Dims, r.base*math.Pow(alpha, dims/(dims-2)))
	}
	feed := s.swiglu
	if p.hasExperts() {
		m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
		feed = m.besideShared
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := b.HeadNorm(r.turn(b, b.Linear(n, "attn_q", s.heads*s.kDim)), "attn_q_norm", s.kDim, s.eps)
		k := b.HeadNorm(r.turn(b, b.Linear(n, "attn_k", s.kvHeads*s.kDim)), "attn_k_norm", s.kDim, s.eps)
		v := b.Linear(n, "attn_v", s.kvHeads*s.vDim)
		x = b.Add(x, b.Linear(b.Attend(q, k, v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, feed(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
