package arch

import "github.com/sluice-ai/sluice/internal/ir"

// GroveMoE. Paper: arXiv:2508.07785; checked against a plain program of what was published with the model.
// Differs from Qwen 3 with experts: beside them is a second mixture, of small experts that groups of neighbours share;
// such an adjutant weighs as much as all of its group that are chosen. It is a layer of the program of its own, whose
// router is the first one's, computed again: the stream has beside it what the first mixture gave. llama.cpp (v0.5.0)
// gives adjutants what the first mixture made of a row, and weighs them by the experts of their own numbers: neither is
// what the model was trained with, and its answers differ.
func groveMoE(p *params, b *ir.Builder) {
	s := p.mixed("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	group := p.count("experts_per_group", m.experts)
	if m.experts%group != 0 {
		p.faultf("%s: is %d, want a divisor of %s, %d", p.key("experts_per_group"), group, p.key("expert_count"), m.experts)
		group = 1
	}
	ffn, factor := p.count("expert_chunk_feed_forward_length", maxFFN), float32(p.positive("expert_group_scale"))
	second := m.route
	second.Neighbours, second.Used = group, min(m.route.Used, m.experts/group)

	x := b.Embed("token_embd", s.vocab, s.width)
	x = b.Stream(b.HeadJoin(x, x, 1))
	for l := range s.layers {
		b.Layer(2 * l)
		b.Within(layerName(l))
		x = b.Slice(x, 0, s.width)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		x = b.HeadJoin(x, x, 1)
		b.FFN()
		x = b.Slice(x, 0, s.width)
		n := b.RMSNorm(x, "ffn_norm", s.eps)
		x = b.HeadJoin(x, m.network(b, n), 1)

		b.Layer(2*l + 1)
		b.Within(layerName(l))
		b.FFN()
		given := b.Slice(x, s.width, s.width)
		x = b.Slice(x, 0, s.width)
		n = b.RMSNorm(x, "ffn_norm", s.eps)
		weights := b.Route(b.Linear(n, "ffn_gate_inp", m.experts), "", second)
		x = b.Add(x, given)
		y := b.Experts(n, weights, "ffn_gate_chexps", "ffn_up_chexps", "ffn_down_chexps", ffn, second.Used, m.act)
		x = b.Add(x, b.Scale(y, factor))
		x = b.HeadJoin(x, x, 1)
	}
	b.Head(b.RMSNorm(b.Slice(b.Rows(x), 0, s.width), "output_norm", s.eps), "output", "token_embd")
}
