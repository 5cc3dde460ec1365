package backendtest

import "github.com/sluice-ai/sluice/internal/ir"

// spaceLike has convolutions and state spaces, and neither attention nor feed-forward parts.
func spaceLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("space-like", func(name string) bool { return name != "output.weight" })
	x := b.Embed("token_embd", s.vocab, s.width)
	a := ir.ScanArgs{Heads: s.heads, Groups: s.kvHeads, KDim: 12, VDim: s.head, Scale: 0.7}
	for l := range s.layers {
		b.Layer(l)
		n := b.CausalConv(b.RMSNorm(x, "attn_norm", 1e-5), "conv", 4)
		x = b.Add(x, ir.CaseScan(b, b.Act(ir.SiLU, n), false, a))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}

// hybridLike has a gated delta network in even layers and gated attention in a window in odd ones.
func hybridLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("hybrid-like", hasNone)
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		if l%2 == 0 {
			a := ir.ScanArgs{Heads: s.heads, Groups: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.5, Tiled: true}
			n = b.Act(ir.SiLU, b.CausalConv(n, "conv", 3))
			x = b.Add(x, ir.CaseScan(b, n, true, a))
		} else {
			a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
			both := b.Linear(n, "attn_q", 2*s.heads*s.head)
			q, gate := b.HeadSlice(both, s.heads, 0, s.head), b.HeadSlice(both, s.heads, s.head, s.head)
			o := b.Attend(ir.CaseRope(b, q, s.head, s.head, false, ""), b.Linear(n, "attn_k", s.kvHeads*s.head),
				b.Linear(n, "attn_v", s.kvHeads*s.head), a)
			x = b.Add(x, b.Linear(b.GLU(ir.Sigmoid, gate, o), "attn_output", s.width))
		}
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		g := b.SwiGLU(b.Linear(n, "ffn_gate", s.ffn), b.Linear(n, "ffn_up", s.ffn))
		x = b.Add(x, b.Linear(g, "ffn_down", s.width))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}

// keyedLike has states whose rows decay each at its own rate, and rows of before. In turn a layer has a scan by
// channels, a delta rule by key, and the recurrence of RWKV, which reads a state after a row or before it.
func keyedLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("keyed-like", hasNone)
	x := b.Embed("token_embd", s.vocab, s.width)
	a := ir.ScanArgs{Heads: s.heads, Groups: s.heads, KDim: s.head, VDim: s.head, Scale: 0.5}
	for l := range 2 * s.layers {
		b.Layer(l)
		n, by := b.RMSNorm(x, "attn_norm", 1e-5), a
		switch l % 4 {
		case 0:
			by = ir.ScanArgs{Heads: 3 * s.width, Groups: 1, KDim: 5, VDim: 1, Scale: 1, ByKey: true}
			n = ir.CaseScan(b, n, false, by)
		case 1:
			by.ByKey = true
			n = ir.CaseScan(b, n, true, by)
		case 2:
			n = ir.CaseWKV(b, b.Add(n, b.Previous(n)), true, by)
		case 3:
			by.Before = true
			n = ir.CaseWKV(b, b.Add(n, b.Scale(b.Previous(n), -0.5)), false, by)
		}
		x = b.Add(x, n)
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}
