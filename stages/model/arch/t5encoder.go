package arch

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// T5's encoders. Paper: arXiv:1910.10683; compared with llama.cpp.
// Differs from BERT: RMS norms come before each block; scores are not scaled, and have biases by distance, of a table
// that layers share if they have none; the feed-forward network is gated by GELU, or has ReLU and no gate.
func t5Encoder(p *params, b *ir.Builder) {
	const farthest = 128 // files do not carry it
	s := p.dense("attention.layer_norm_rms_epsilon")
	a := s.attention()
	a.Both, a.Scale, a.Farthest = true, 1, farthest
	a.Buckets = p.count("attention.relative_buckets_count", farthest-1)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		b.Within(fmt.Sprintf("enc.blk.%d.", l))
		biases := "enc.blk.0.attn_rel_b"
		if b.Has("attn_rel_b.weight") {
			biases = fmt.Sprintf("enc.blk.%d.attn_rel_b", l)
		}
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q, k := b.Linear(n, "attn_q", s.heads*s.kDim), b.Linear(n, "attn_k", s.kvHeads*s.kDim)
		o := b.AttendBiased(q, k, b.Linear(n, "attn_v", s.kvHeads*s.vDim), biases, a)
		x = b.Add(x, b.Linear(o, "attn_o", s.width))
		b.FFN()
		if n = b.RMSNorm(x, "ffn_norm", s.eps); b.Has("ffn_gate.weight") {
			x = b.Add(x, s.gated(b, n, ir.GELU))
		} else {
			x = b.Add(x, s.ungated(b, n, ir.ReLU))
		}
	}
	b.Vectors(b.RMSNorm(b.Pool(x), "enc.output_norm", s.eps))
	b.Pooling(p.pooling())
}
