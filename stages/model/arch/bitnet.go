package arch

import "github.com/sluice-ai/sluice/internal/ir"

// BitNet b1.58. Papers: arXiv:2402.17764, arXiv:2504.12285; compared with llama.cpp.
// Differs from Llama: what heads attended to is normalised before its product, and so is what the gate lets through;
// RoPE turns halves; products of ternary matrices may be multiplied by a factor of the file; the output matrix is the
// embedding.
func bitNet(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	act := p.activation(ir.SiLU)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q, k := r.turn(b, rescaled(b, n, "attn_q", s.heads*s.kDim)), r.turn(b, rescaled(b, n, "attn_k", s.kvHeads*s.kDim))
		o := b.Attend(q, k, rescaled(b, n, "attn_v", s.kvHeads*s.vDim), s.attention())
		x = b.Add(x, rescaled(b, b.RMSNorm(o, "attn_sub_norm", s.eps), "attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", s.eps)
		g := b.GLU(act, rescaled(b, n, "ffn_gate", s.ffn), rescaled(b, n, "ffn_up", s.ffn))
		x = b.Add(x, rescaled(b, b.RMSNorm(g, "ffn_sub_norm", s.eps), "ffn_down", s.width))
	}
	s.head(b, x)
}

// rescaled is Linear times the factor that a file may have for the matrix.
func rescaled(b *ir.Builder, x ir.Value, name string, out int) ir.Value {
	y := b.Linear(x, name, out)
	if !b.Has(name + ".scale") {
		return y
	}
	return b.Affine(y, name+".scale", 1, "", 0)
}
