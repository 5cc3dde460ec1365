package backendtest

import (
	"cmp"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// freqs are RoPE's frequencies at base 10000.
func freqs(dims int) []float64 {
	f := make([]float64, dims/2)
	for i := range f {
		f[i] = math.Pow(10000, -2*float64(i)/float64(dims))
	}
	return f
}

// around records a program that computes op, which may open segments of layer 0, between an embedding and logits,
// unchanged but for a factor of a half and one of two: vocabulary and width are both n, and so must be the width of
// what op returns.
func around(n int, op func(b *ir.Builder, x ir.Value) ir.Value) (*ir.Program, error) {
	b := ir.NewBuilder("op", hasAll)
	x := b.Embed("token_embd", n, n)
	b.Layer(0)
	x = op(b, x)
	b.Layer(1)
	b.FFN()
	x = b.Scale(x, 0.5)
	b.Logits(b.Scale(b.Rows(x), 2))
	return b.Program(1 << 10)
}

func hasAll(string) bool { return true }

func hasNone(string) bool { return false }

// opCases has at least one case for every Op; n is the width, a multiple of 64.
var opCases = []struct {
	name  string
	op    ir.Op
	build func(b *ir.Builder, x ir.Value, n int) ir.Value
}{
	{"embed", ir.Embed, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Scale(x, 0.25) }},
	{"embed twice", ir.Embed, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Add(x, b.Slice(b.Lookup("others", 3*n), n, n))
	}},
	{"norm rms", ir.Norm, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.RMSNorm(x, "n", 1e-5) }},
	{"norm heads", ir.Norm, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.HeadNorm(x, "n", n/4, 1e-6) }},
	{"norm groups", ir.Norm, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.GroupNorm(x, "n", 2, 1e-6) }},
	{"norm each head", ir.Norm, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.EachHeadLayerNorm(x, "n", n/4, 1e-6)
	}},
	{"norm layer", ir.Norm, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.LayerNorm(x, "n", 1e-5) }},
	{"rope halves", ir.RoPE, func(b *ir.Builder, x ir.Value, n int) ir.Value { return turned(b, x, 32, 32, false, "") }},
	{"rope neighbours", ir.RoPE, func(b *ir.Builder, x ir.Value, n int) ir.Value { return turned(b, x, 16, 16, true, "") }},
	{"rope partial", ir.RoPE, func(b *ir.Builder, x ir.Value, n int) ir.Value { return turned(b, x, 64, 24, false, "") }},
	{"rope divisors", ir.RoPE, func(b *ir.Builder, x ir.Value, n int) ir.Value { return turned(b, x, 32, 32, true, "f") }},
	{"attend", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return attended(b, x, ir.AttendArgs{Heads: n / 16, KVHeads: n / 16, KDim: 16, VDim: 16, Scale: 0.25})
	}},
	{"attend grouped", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return attended(b, x, ir.AttendArgs{Heads: n / 32, KVHeads: 1, KDim: 32, VDim: 32, Scale: 0.2})
	}},
	{"attend window", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return attended(b, x, ir.AttendArgs{Heads: n / 32, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2, Window: 70})
	}},
	{"attend narrow", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return attended(b, x, ir.AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Window: 1})
	}},
	{"attend cap", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return attended(b, x, ir.AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 1, SoftCap: 3})
	}},
	{"attend sinks", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		a := ir.AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Window: 70}
		return b.AttendSinks(x, b.Slice(x, 0, 32), b.Slice(x, 32, 32), "sinks", a)
	}},
	{"attend chunked", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return attended(b, x, ir.AttendArgs{Heads: n / 32, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2, Window: 70, Chunked: true})
	}},
	{"attend chunks", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return attended(b, x, ir.AttendArgs{Heads: n / 16, KVHeads: 1, KDim: 16, VDim: 16, Scale: 0.2, Window: 24, Chunked: true})
	}},
	{"attend shared", ir.Attend, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		a := ir.AttendArgs{Heads: n / 16, KVHeads: 2, KDim: 16, VDim: 16, Scale: 0.2, Window: 70}
		first := attended(b, x, a)
		return b.AttendShared(b.Add(x, first), first, a)
	}},
	{"temper", ir.Temper, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Temper(x, 0.3, 3) }},
	{"affine", ir.Affine, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Affine(b.Affine(x, "", 0, "kinds", 2), "a", n, "b", 1)
	}},
	{"affine one", ir.Affine, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Affine(x, "a", 1, "", 0) }},
	{"position", ir.Position, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Position(x, "p", 512) }},
	{"token type", ir.TokenType, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		sep := prompt(4, 30, n)[29]
		return b.TokenTypes(b.TokenTypes(x, "one", 1, sep), "many", 2, sep)
	}},
	{"swiglu", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.SwiGLU(x, b.Scale(x, 3)) }},
	{"geglu", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.GLU(ir.GELU, x, b.Scale(x, 3)) }},
	{"silu", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Act(ir.SiLU, x) }},
	{"gelu", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Act(ir.GELU, x) }},
	{"gelu erf", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Act(ir.GELUErf, x) }},
	{"relu²", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Act(ir.ReLU2, x) }},
	{"sigmoid", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Act(ir.Sigmoid, x) }},
	{"clamped", ir.GLU, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.GLU(ir.Clamped, b.Scale(x, 4), b.Scale(x, 5))
	}},
	{"add", ir.Add, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Add(x, b.Act(ir.SiLU, x)) }},
	{"mul", ir.Mul, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Mul(x, b.Act(ir.SiLU, x)) }},
	{"mul row", ir.Mul, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Mul(x, b.Slice(x, 5, 1)) }},
	{"scale", ir.Scale, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Scale(x, -1.7) }},
	{"soft cap", ir.SoftCap, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.SoftCap(b.Scale(x, 9), 5) }},
	{"slice", ir.Slice, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		wide := b.Linear(x, "wide", 2*n+n/2)
		return b.Mul(b.Slice(wide, n/2, n), b.Slice(wide, n/2+n, n))
	}},
	{"head linear", ir.HeadLinear, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.HeadLinear(x, "w", n/32, 32)
	}},
	{"head linear narrow", ir.HeadLinear, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.HeadLinear(b.HeadLinear(x, "w", 2, 48), "v", 4, n/4)
	}},
	{"head slice", ir.HeadSlice, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.HeadJoin(b.HeadSlice(x, 4, n/4-5, 5), b.HeadSlice(x, 4, 0, n/4-5), 4)
	}},
	{"head join", ir.HeadJoin, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.HeadJoin(b.Slice(x, 0, n/2), b.Slice(x, n/2, n/2), 8)
	}},
	{"head join shared", ir.HeadJoin, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.HeadJoinShared(b.Slice(x, 0, n/2), b.Slice(x, 3, n/8), 4)
	}},
	{"conv", ir.CausalConv, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.CausalConv(x, "c", 4) }},
	{"conv wide", ir.CausalConv, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Slice(b.CausalConv(b.Linear(x, "wide", 9*n), "c", 2), 7*n, n)
	}},
	{"ssm scan", ir.SSMScan, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return scanned(b, x, false, ir.ScanArgs{Heads: 6, Groups: 2, KDim: 16, VDim: 24, Scale: 1})
	}},
	{"ssm scan tiled", ir.SSMScan, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return scanned(b, x, false, ir.ScanArgs{Heads: 4, Groups: 2, KDim: 7, VDim: 96, Scale: 2, Tiled: true})
	}},
	{"delta rule", ir.DeltaRule, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return scanned(b, x, true, ir.ScanArgs{Heads: 6, Groups: 3, KDim: 16, VDim: 24, Scale: 0.25})
	}},
	{"delta rule tiled", ir.DeltaRule, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return scanned(b, x, true, ir.ScanArgs{Heads: 4, Groups: 2, KDim: 32, VDim: 128, Scale: 1, Tiled: true})
	}},
	{"linear", ir.Linear, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Linear(x, "w", n) }},
	{"rows", ir.Rows, func(b *ir.Builder, x ir.Value, n int) ir.Value { return b.Scale(x, 3) }},
	{"route", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Route(x, "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 8, Scale: 1})
	}},
	{"route normalised", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Route(x, "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 5, Normalise: true, Scale: 2.5})
	}},
	{"route chosen", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Route(x, "", ir.RouteArgs{Scoring: ir.SoftmaxChosen, Used: 4, Scale: 1})
	}},
	{"route ties", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Route(b.Act(ir.ReLU2, x), "", ir.RouteArgs{Scoring: ir.SoftmaxChosen, Used: n - 9, Scale: 1})
	}},
	{"route groups", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		a := ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 6, Groups: n / 16, GroupsUsed: 3, GroupBest: 2, Normalise: true,
			Scale: 1.5}
		return b.Route(x, "r", a)
	}},
	{"route groups of one", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Route(x, "r", ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 1, Groups: n, GroupsUsed: 1, GroupBest: 2, Scale: 1})
	}},
	{"route groups by one", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Route(x, "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 6, Groups: 8, GroupsUsed: 3, GroupBest: 1, Scale: 16})
	}},
	{"route mixer", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.Route(x, "", ir.RouteArgs{Scoring: ir.SparseMixer, Used: 2, Scale: 1})
	}},
	{"route scaled", ir.Route, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		return b.RouteScaled(x, "s", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 5, Normalise: true, Scale: 2})
	}},
	{"experts", ir.Experts, func(b *ir.Builder, x ir.Value, n int) ir.Value { return mixed(b, x, 7, 3, ir.SiLU) }},
	{"experts all", ir.Experts, func(b *ir.Builder, x ir.Value, n int) ir.Value { return mixed(b, x, 3, 3, ir.Clamped) }},
	{"experts one", ir.Experts, func(b *ir.Builder, x ir.Value, n int) ir.Value { return mixed(b, x, 40, 1, ir.GELU) }},
	{"experts joined", ir.Experts, func(b *ir.Builder, x ir.Value, n int) ir.Value { return joined(b, x, 64) }},
	{"experts joined, narrow", ir.Experts, func(b *ir.Builder, x ir.Value, n int) ir.Value { return joined(b, x, 48) }},
	{"experts before", ir.Experts, func(b *ir.Builder, x ir.Value, n int) ir.Value {
		b.FFN()
		w := b.Route(b.Linear(x, "ffn_gate_inp", 5), "", ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 2, Scale: 1})
		return b.ExpertsBefore(x, w, "gate", "up", "down", 64, 2, ir.SiLU)
	}},
}

// joined is x through 2 of 6 experts of so many features, whose gate and up are one weight.
func joined(b *ir.Builder, x ir.Value, ffn int) ir.Value {
	b.FFN()
	w := b.Route(b.Linear(x, "ffn_gate_inp", 6), "", ir.RouteArgs{Scoring: ir.SoftmaxChosen, Used: 2, Scale: 1})
	return b.Experts(x, w, "gate_up", "gate_up", "down", ffn, 2, ir.GELU)
}

// mixed is x through used of so many experts of 64 features, with biases if the builder has all.
func mixed(b *ir.Builder, x ir.Value, experts, used int, act ir.Act) ir.Value {
	b.FFN()
	a := ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: used, Normalise: true, Scale: 1}
	w := b.Route(b.Linear(x, "ffn_gate_inp", experts), "", a)
	return b.Experts(x, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", 64, used, act)
}

func turned(b *ir.Builder, x ir.Value, head, dims int, neighbours bool, factors string) ir.Value {
	return b.Rope(x, ir.RoPEArgs{
		HeadDim: head, Dims: dims, Interleaved: neighbours, Freq: freqs(dims), Mscale: 1.25,
	}, factors)
}

// attended takes q, k and v from x itself, so that nothing but attention is computed.
func attended(b *ir.Builder, x ir.Value, a ir.AttendArgs) ir.Value {
	k, v := a.KVHeads*a.KDim, a.KVHeads*a.VDim
	return b.Attend(x, b.Slice(x, b.Width(x)-k, k), b.Slice(x, 0, v), a)
}

// small is the size of a tiny model; widths are multiples of 256 where K-quants are to fit.
type small struct {
	layers, width, ffn, vocab, heads, kvHeads, head int
	used                                            int // of 8 experts; 0: all, so that rounding cannot change the choice
	window                                          int // of the gemma-like one's; 0: 20
	chunked                                         bool
}

// llamaLike has GQA, RoPE of neighbours, SwiGLU and an output matrix of its own.
func llamaLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("llama-like", func(name string) bool { return name == "output.weight" })
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		q := turned(b, b.Linear(n, "attn_q", s.heads*s.head), s.head, s.head, true, "")
		k := turned(b, b.Linear(n, "attn_k", s.kvHeads*s.head), s.head, s.head, true, "")
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
		q, k = turned(b, q, s.head, s.head, false, ""), turned(b, k, s.head, s.head, false, "")
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
		o := b.Attend(turned(b, b.Slice(qkv, 0, q), s.head, s.head/2, false, ""),
			turned(b, b.Slice(qkv, q, kv), s.head, s.head/2, false, ""), b.Slice(qkv, q+kv, kv), a)
		x = b.Add(x, b.Linear(o, "attn_output", s.width))
		b.FFN()
		up := b.Act(ir.GELU, b.Linear(b.LayerNorm(x, "ffn_norm", 1e-5), "ffn_up", s.ffn))
		x = b.Add(x, b.Linear(up, "ffn_down", s.width))
	}
	b.Head(b.LayerNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	return b.Program(1 << 10)
}

// mixtureLike has experts, in odd layers with inputs that are weighed, a shared one with a gate, and sinks.
func mixtureLike(s small) (*ir.Program, error) {
	b := ir.NewBuilder("mixture-like", hasNone)
	a := ir.AttendArgs{Heads: s.heads, KVHeads: s.kvHeads, KDim: s.head, VDim: s.head, Scale: 0.3}
	route := ir.RouteArgs{Scoring: ir.SoftmaxChosen, Used: cmp.Or(s.used, 8), Scale: 1}
	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", 1e-5)
		q := turned(b, b.Linear(n, "attn_q", s.heads*s.head), s.head, s.head, false, "")
		k := turned(b, b.Linear(n, "attn_k", s.kvHeads*s.head), s.head, s.head, false, "")
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

// latentLike has latent attention: heads with matrices of their own, that all attend to one vector and one turned key.
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
		rot := turned(b, b.HeadSlice(q, s.heads, still, s.head), s.head, s.head, true, "")
		kv := b.Linear(n, "attn_kv_a_mqa", rank+s.head)
		v := b.RMSNorm(b.Slice(kv, 0, rank), "attn_kv_a_norm", 1e-5)
		k := b.HeadJoin(v, turned(b, b.Slice(kv, rank, s.head), s.head, s.head, true, ""), 1)
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
	{"latent", latentLike}, {"space", spaceLike}, {"hybrid", hybridLike}, {"shared", sharedLike}}
