package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Chameleon. Paper: arXiv:2405.09818; compared with llama.cpp.
// Differs from Llama: heads of Q and K are layer-normalised, each by weights of its own; of its tokens those of
// pictures are never the next ones. Files of 34B, whose norms follow blocks, are refused: llama.cpp (v0.5.0) gives
// their feed-forward networks other numbers than they were trained with.
func chameleon(p *params, b *ir.Builder) {
	const eps = 1e-5 // of the norms of heads: files do not carry it
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)
	if p.has("swin_norm") && p.flag("swin_norm") {
		p.faultf("%s: is true, and norms after blocks are not supported: nothing is known that computes them as they were trained",
			p.key("swin_norm"))
	}
	if s.vocab <= pictureEnd {
		p.faultf("tokenizer.ggml.tokens: has %d tokens, want more than those of pictures, which end at %d", s.vocab, pictureEnd)
		return
	}
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		q, k = b.EachHeadLayerNorm(q, "attn_q_norm", s.kDim, eps), b.EachHeadLayerNorm(k, "attn_k_norm", s.kDim, eps)
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	withoutPictures(b, s.head(b, x))
}

// Tokens of pictures, of which Chameleon's vocabulary has one range.
const (
	pictureFrom, pictureEnd = 4, 8196
	never                   = -1e30 // a logit of what is not chosen
)

// withoutPictures ends the program with logits by which no token of pictures is chosen.
func withoutPictures(b *ir.Builder, logits ir.Value) {
	half := b.Act(ir.Sigmoid, b.Scale(b.Slice(logits, pictureFrom, pictureEnd-pictureFrom), 0))
	low := b.HeadJoin(b.Slice(logits, 0, pictureFrom), b.Scale(half, 2*never), 1)
	b.Logits(b.HeadJoin(low, b.Slice(logits, pictureEnd, b.Width(logits)-pictureEnd), 1))
}
