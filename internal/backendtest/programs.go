package backendtest

import (
	"cmp"

	"github.com/sluice-ai/sluice/internal/ir"
)

func hasNone(string) bool { return false }

// small is the size of a tiny model; widths are multiples of 256 where K-quants are to fit.
type small struct {
	layers, width, ffn, vocab, heads, kvHeads, head int
	used                                            int // of 8 experts; 0: all, so that rounding cannot change the choice
	window                                          int // of gemmaLike's windows; 0: 20
	chunked                                         bool
	adapts                                          bool // it takes adapters
}

// llamaLike has GQA, RoPE of neighbours, SwiGLU and an output matrix of its own.
func llamaLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("llama-like", func(name string) bool { return name == "output.weight" })
	if s.adapts {
		b.Adaptable()
	}
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		q := ir.CaseRope(b, b.Linear(n, "attn_q", s.heads*s.head), s.head, s.head, true, "")
		k := ir.CaseRope(b, b.Linear(n, "attn_k", s.kvHeads*s.head), s.head, s.head, true, "")
		o := b.Attend(q, k, b.Linear(n, "attn_v", s.kvHeads*s.head), a)
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		g := b.SwiGLU(b.Linear(n, "ffn_gate", s.ffn), b.Linear(n, "ffn_up", s.ffn))
		x = b.Add(x, b.Linear(g, "ffn_down", s.width))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}

// gemmaLike has head norms, norms after blocks, GeGLU, windows on even layers, caps and a tied head.
func gemmaLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("gemma-like", hasNone)
	if s.adapts {
		b.Adaptable()
	}
	x := b.Scale(b.Embed("token_embd", s.vocab, s.width), 2)
	for l := range s.layers {
		a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3, SoftCap: 4}
		if l%2 == 0 {
			a.Window, a.Chunked = cmp.Or(s.window, 20), s.chunked
		}
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-6)
		q := b.HeadNorm(b.Linear(n, "attn_q", s.heads*s.head), "attn_q_norm", s.head, 1e-6)
		k := b.HeadNorm(b.Linear(n, "attn_k", s.kvHeads*s.head), "attn_k_norm", s.head, 1e-6)
		q, k = ir.CaseRope(b, q, s.head, s.head, false, ""), ir.CaseRope(b, k, s.head, s.head, false, "")
		o := b.Attend(q, k, b.Linear(n, "attn_v", s.kvHeads*s.head), a)
		x = b.Add(x, b.RMSNorm(b.Linear(o, "attn_output", s.width), "post_attention_norm", 1e-6))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-6)
		g := b.GLU(ir.GELU, b.Linear(n, "ffn_gate", s.ffn), b.Linear(n, "ffn_up", s.ffn))
		x = b.Add(x, b.RMSNorm(b.Linear(g, "ffn_down", s.width), "post_ffw_norm", 1e-6))
	}
	b.Logits(b.SoftCap(b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-6), "output", "token_embd"), 10))
	return b.Program(1 << 10)
}

// starcoderLike has LayerNorms, biases, a fused QKV matrix and a feed-forward network without gate.
func starcoderLike(s small) (*ir.Program, error) {
	has := func(name string) bool {
		return name != "output.weight" && name != "output.bias" && name != "token_embd.bias"
	}
	b := ir.NewBuilder("starcoder-like", has)
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
	q, kv := s.heads*s.head, s.kvHeads*s.head
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		qkv := b.Linear(b.LayerNorm(x, "attn_norm", 1e-5), "attn_qkv", q+2*kv)
		o := b.Attend(ir.CaseRope(b, b.Slice(qkv, 0, q), s.head, s.head/2, false, ""),
			ir.CaseRope(b, b.Slice(qkv, q, kv), s.head, s.head/2, false, ""), b.Slice(qkv, q+kv, kv), a)
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		up := b.Act(ir.GELU, b.Linear(b.LayerNorm(x, "ffn_norm", 1e-5), "ffn_up", s.ffn))
		x = b.Add(x, b.Linear(up, "ffn_down", s.width))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}

// mixtureLike has experts (in odd layers weights multiply their inputs), a shared expert with a gate, and sinks.
func mixtureLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("mixture-like", hasNone)
	if s.adapts {
		b.Adaptable()
	}
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
	route := ir.RouteArgs{Scoring: ir.SoftmaxChosen, Used: cmp.Or(s.used, 8), Scale: 1}
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		q := ir.CaseRope(b, b.Linear(n, "attn_q", s.heads*s.head), s.head, s.head, false, "")
		k := ir.CaseRope(b, b.Linear(n, "attn_k", s.kvHeads*s.head), s.head, s.head, false, "")
		o := b.AttendSinks(q, k, b.Linear(n, "attn_v", s.kvHeads*s.head), "attn_sinks", a)
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		g := b.SwiGLU(b.Linear(n, "ffn_gate_shexp", s.ffn), b.Linear(n, "ffn_up_shexp", s.ffn))
		shared := b.Mul(b.Linear(g, "ffn_down_shexp", s.width), b.Act(ir.Sigmoid, b.Linear(n, "ffn_gate_inp_shexp", 1)))
		w := b.Route(b.Linear(n, "ffn_gate_inp", 8), "", route)
		experts := b.Experts
		if l%2 == 1 {
			experts = b.ExpertsBefore
		}
		y := experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", s.ffn, route.Used, ir.SiLU)
		x = b.Add(x, b.Add(y, shared))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}

// latentLike has latent attention: each head has matrices of its own, and all attend to one vector and one rotated key.
func latentLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("latent-like", hasNone)
	rank, still := s.width, s.width
	a := ir.AttendArgs{Heads: s.heads, KVHeads: 1, KDim: rank + s.head, VDim: rank, Scale: 0.2}
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		q := b.Linear(n, "attn_q", s.heads*(still+s.head))
		absorbed := b.HeadLinear(b.HeadSlice(q, s.heads, 0, still), "attn_k_b", s.heads, rank)
		rot := ir.CaseRope(b, b.HeadSlice(q, s.heads, still, s.head), s.head, s.head, true, "")
		kv := b.Linear(n, "attn_kv_a_mqa", rank+s.head)
		v := b.RMSNorm(b.Slice(kv, 0, rank), "attn_kv_a_norm", 1e-5)
		k := b.HeadJoin(v, ir.CaseRope(b, b.Slice(kv, rank, s.head), s.head, s.head, true, ""), 1)
		o := b.HeadLinear(b.Attend(b.HeadJoin(absorbed, rot, s.heads), k, v, a), "attn_v_b", s.heads, s.head)
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", 1e-5)
		g := b.SwiGLU(b.Linear(n, "ffn_gate", s.ffn), b.Linear(n, "ffn_up", s.ffn))
		x = b.Add(x, b.Linear(g, "ffn_down", s.width))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}

// models are whole small programs, by the families they resemble.
var models = []struct {
	name   string
	record func(small) (*ir.Program, error)
}{{"llama", llamaLike}, {"gemma", gemmaLike}, {"starcoder", starcoderLike}, {"mixture", mixtureLike},
	{"latent", latentLike}, {"space", spaceLike}, {"hybrid", hybridLike}, {Keyed, keyedLike}, {"shared", sharedLike}}
