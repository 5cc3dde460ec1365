package backendtest

import "github.com/sluice-ai/sluice/internal/ir"

// sharedLike has layers that share: even ones have a second input from a table that the embedding reads, too; odd ones
// attend to what the layer before stored, and have experts with gate and up in one weight.
func sharedLike(s small) (*ir.Program, error) {
	each := s.width
	b := ir.NewBuilder("shared-like", hasNone)
	e := b.Embed("token_embd", s.vocab, s.width)
	inputs := b.HeadNorm(b.Linear(e, "per_layer_model_proj", s.layers*each), "per_layer_proj_norm", each, 1e-6)
	inputs = b.Add(inputs, b.Scale(b.Lookup("per_layer_token_embd", s.layers*each), 3))
	x, filled := b.Scale(e, 2), ir.Value(0)
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3, Window: 21}
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-6)
		q := ir.CaseRope(b, b.Linear(n, "attn_q", s.heads*s.head), s.head, s.head, false, "")
		var o ir.Value
		if l%2 == 0 {
			k := ir.CaseRope(b, b.Linear(n, "attn_k", s.kvHeads*s.head), s.head, s.head, false, "")
			o = b.Attend(q, k, b.BareHeadNorm(b.Linear(n, "attn_v", s.kvHeads*s.head), s.head, 1e-6), a)
			filled = o
		} else {
			o = b.AttendShared(q, filled, a)
		}
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-6)
		if l%2 == 0 {
			own := b.GLU(ir.GELU, b.Linear(n, "inp_gate", each), b.Slice(inputs, l*each, each))
			x = b.Add(x, b.Linear(own, "proj", s.width))
			continue
		}
		all := ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 4, Normalise: true, Scale: 1}
		w := b.RouteScaled(b.Linear(n, "ffn_gate_inp", 4), "ffn_down_exps.scale", all)
		x = b.Add(x, b.Experts(n, w, "ffn_gate_up_exps", "ffn_gate_up_exps", "ffn_down_exps", s.ffn, all.Used, ir.GELU))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-6), "output", "token_embd")
	return b.Program(1 << 10)
}
