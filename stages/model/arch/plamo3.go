package arch

import "github.com/sluice-ai/sluice/internal/ir"

// PLaMo 3. Compared with llama.cpp.
// Differs from Qwen 3: blocks are normalised before and after; Q, K and V are one matrix, and so are gate and what it
// multiplies; a window on all but every eighth layer, where RoPE has a base of its own; two norms are called without an
// ending.
func plamo3(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	global := p.rope(&s, halves, 10000)
	near := p.swaRope(&s, global)
	window, local := p.window(), p.local(s.layers, 8)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a, r := s.attention(), global
		if window > 0 && local(l) {
			a.Window, r = window, near
		}
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		q, k = b.HeadNorm(q, "attn_q_norm", s.kDim, s.eps), b.HeadNorm(k, "attn_k_norm", s.kDim, s.eps)
		o := b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, a), "attn_output", s.width)
		x = b.Add(x, b.RMSNormBy(o, "post_attention_norm", s.eps))
		b.FFN()
		f := s.fusedSwiGLU(b, b.RMSNorm(x, "ffn_norm", s.eps))
		x = b.Add(x, b.RMSNormBy(f, "post_ffw_norm", s.eps))
	}
	s.head(b, x)
}

// swaRope is the rope of layers with a window: r with a base of its own, if the file has one.
func (p *params) swaRope(s *shape, r rope) rope {
	if !p.has("rope.freq_base_swa") {
		return r
	}
	return s.newRope(pairing(r.args.Interleaved), r.args.Dims, p.positive("rope.freq_base_swa"))
}
