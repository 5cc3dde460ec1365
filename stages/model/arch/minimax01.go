package arch

import "github.com/sluice-ai/sluice/internal/ir"

// MiniMax Text 01. Paper: arXiv:2501.08313; compared with llama.cpp.
// Differs from Qwen 3 with experts: of eight layers seven have lightning attention, whose states decay at a constant
// rate by head and layer; what a block gives is added to its normalised input, times a factor. Every eighth layer
// attends; RoPE turns a part of its heads. llama.cpp never answers with tokens from number 200032 on, which no text of
// the vocabulary is: here they are as unlikely as the model has learnt that they are.
func minimax01(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	m := p.mixture(&s, ir.RouteArgs{Scoring: ir.SoftmaxAll, Normalise: true})
	factor, recurs := float32(p.positive("residual_scale")), p.recurrent(s.layers, 8)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		n := b.RMSNorm(x, "attn_norm", s.eps)
		var y ir.Value
		if recurs(l) {
			slopes := 1 - float64(l)/float64(max(s.layers-1, 1)) + 1e-5
			y = s.lightning(b, n, float32(slopes))
		} else {
			y = s.selfAttend(b, n, r, s.attention())
		}
		x = b.Add(y, b.Scale(n, factor))
		b.FFN()
		n = b.RMSNorm(x, "ffn_norm", s.eps)
		kept := b.Scale(n, factor)
		x = b.Add(m.network(b, n), kept)
	}
	s.head(b, x)
}

// lightning is lightning attention: each head's q, k and v lie side by side, and it has a sigmoid gate.
func (s *shape) lightning(b *ir.Builder, x ir.Value, slopes float32) ir.Value {
	inner := s.heads * s.kDim
	qkv := b.Act(ir.SiLU, b.Linear(x, "attn_qkv", 3*inner))
	at := func(i int) ir.Value { return b.HeadSlice(qkv, s.heads, i*s.kDim, s.kDim) }
	a := ir.ScanArgs{Heads: s.heads, KDim: s.kDim, VDim: s.kDim, Scale: 1}
	y := b.RMSNorm(b.Lightning(at(0), at(1), at(2), slopes, a), "attn_norm_2", s.eps)
	return b.Linear(b.GLU(ir.Sigmoid, b.Linear(x, "attn_gate", inner), y), "attn_output", s.width)
}

// recurrent says which layers have a state: those that the file lists, or all but every so many.
func (p *params) recurrent(layers, every int) func(layer int) bool {
	if p.has("attention.recurrent_layers") {
		return p.flags("attention.recurrent_layers", layers)
	}
	every = p.countOr("full_attention_interval", maxLayers, every)
	return func(l int) bool { return (l+1)%every != 0 }
}
