package arch

import "github.com/sluice-ai/sluice/internal/ir"

// gpt-oss. Paper: arXiv:2508.10925; checked against transformers, modeling_gpt_oss.py.
// Differs from Llama: every matrix has a bias; each head's softmax has a sink; a window on every other layer, the first
// included; RoPE turns halves; experts with clamped gates, by a softmax over the chosen ones.
func gptOSS(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 150000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxChosen})
	m.act = ir.Clamped
	local, window := p.local(s.layers, 2), p.window()

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		a := s.attention()
		if local(l) {
			a.Window = window
		}
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		q := r.turn(b, b.LinearBias(n, "attn_q", s.heads*s.kDim))
		k := r.turn(b, b.LinearBias(n, "attn_k", s.kvHeads*s.kDim))
		v := b.LinearBias(n, "attn_v", s.kvHeads*s.vDim)
		x = b.Add(x, b.LinearBias(b.AttendSinks(q, k, v, "attn_sinks", a), "attn_output", s.width))
		b.FFN()
		x = b.Add(x, m.network(b, b.RMSNorm(x, "post_attention_norm", s.eps)))
	}
	s.head(b, x)
}
