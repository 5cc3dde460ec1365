package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// What MiniCPM's models were trained with: files of before 2025, and those of MiniCPM 3, do not carry it.
const (
	cpmEmbedding = 12
	cpmDepth     = 1.4 // over the square root of the number of layers
	cpmWidth     = 256 // whose logits are as they come
)

// MiniCPM 1, 2 and 4. Paper: arXiv:2404.06395; compared with llama.cpp.
// Differs from Granite: what the multipliers are where the file does not say; the long versions divide RoPE's
// frequencies as Phi 3 does.
func miniCPM(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	feed := p.feed(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	r := p.longRopeBy(&s, b, neighbours)
	m := p.multipliers(cpmEmbedding, cpmDepth/math.Sqrt(float64(s.layers)), float64(s.width)/cpmWidth)

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), m.embedding)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, b.Scale(s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()), m.residual))
		b.FFN()
		x = b.Add(x, b.Scale(feed(b, b.RMSNorm(x, "ffn_norm", s.eps)), m.residual))
	}
	b.Logits(b.Scale(s.head(b, x), m.logits))
}

// MiniCPM 3. Compared with llama.cpp.
// Differs from MiniCPM: latent attention, whose matrices lie as in early files of DeepSeek V2; RoPE turns halves.
func miniCPM3(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	la := p.latent(&s)
	la.rope = p.longRope(&s, b)
	residual := float32(cpmDepth / math.Sqrt(float64(s.layers)))

	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), cpmEmbedding)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, b.Scale(la.attend(&s, b, b.RMSNorm(x, "attn_norm", s.eps)), residual))
		b.FFN()
		x = b.Add(x, b.Scale(s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)), residual))
	}
	b.Logits(b.Scale(s.head(b, x), float32(cpmWidth/float64(s.width))))
}
