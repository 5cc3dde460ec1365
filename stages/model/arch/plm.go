package arch

import "github.com/sluice-ai/sluice/internal/ir"

// PLM. Paper: arXiv:2503.12167; compared with llama.cpp.
// Differs from Llama: multi-head latent attention as in early files of DeepSeek V2; a feed-forward network without
// gate, squared ReLU; the output matrix is always the embedding table.
func plm(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	a := p.latent(&s)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, a.attend(&s, b, b.RMSNorm(x, "attn_norm", s.eps)))
		b.FFN()
		x = b.Add(x, s.ungated(b, b.RMSNorm(x, "ffn_norm", s.eps), ir.ReLU2))
	}
	s.head(b, x)
}
