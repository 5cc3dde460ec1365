package arch

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// CogVLM, text. Paper: arXiv:2311.03079; compared with llama.cpp.
// Differs from Llama: Q, K and V are one matrix. Pictures have matrices of their own in every layer, which texts do not
// meet.
func cogVLM(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		q, k, v := s.qkv(b, b.RMSNorm(x, "attn_norm", s.eps))
		x = b.Add(x, b.Linear(b.Attend(r.turn(b, q), r.turn(b, k), v, s.attention()), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
		for _, name := range []string{"vis_attn_qkv.", "vis_attn_output.", "vis_gate.", "vis_up.", "vis_down."} {
			b.Ignore(fmt.Sprintf("blk.%d.%s", l, name))
		}
	}
	s.head(b, x)
}
