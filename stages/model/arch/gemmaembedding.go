package arch

import "github.com/sluice-ai/sluice/internal/ir"

// EmbeddingGemma. Paper: arXiv:2509.20354; compared with llama.cpp.
// Differs from Gemma 3: rows see those after them, in local layers half a window on each side; the end is a vector for
// each row. Two matrices may follow, which sentence-transformers applies to a text's mean: a mean of rows that were
// multiplied is the same.
func gemmaEmbedding(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	global := p.rope(&s, halves, 1e6)
	near := s.newRope(halves, global.args.Dims, p.positiveOr("rope.freq_base_swa", 10000))
	local, reach := p.local(s.layers, 6), p.window()/2
	a := s.attention()
	a.Both = true

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), s.embeddingScale())
	for l := range s.layers {
		r := global
		a.Reach = 0
		if reach > 0 && local(l) {
			r, a.Reach = near, reach
		}
		b.Layer(l)
		o := s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a)
		x = s.gemmaBlocks(b, x, o)
	}
	x = b.RMSNorm(b.Pool(x), "output_norm", s.eps)
	for _, name := range []string{"dense_2", "dense_3"} {
		if b.Has(name + ".weight") {
			x = b.Linear(x, name, p.count(name+"_feat_out", maxFFN))
		}
	}
	b.Vectors(x)
	b.Pooling(p.pooling())
	b.Ignore("output.weight")
}
