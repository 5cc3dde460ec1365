package arch

import "github.com/sluice-ai/sluice/internal/ir"

// EAGLE-3, which guesses tokens for another model, its target. Paper: arXiv:2503.01840; compared with llama.cpp,
// eagle3.cpp, and SGLang, llama_eagle3.py. It is a head (see TargetRows) with a file of its own, for a target that was
// not trained with one. Its row takes the embedding of a token, and the residual stream that the target had before
// three of its layers at the token before, through one matrix; or, for a token that it has guessed itself, what its own
// layer left. The layer is Llama's, but for attention, which reads both side by side, each normalised. The stream goes
// past attention as it is, or normalised if the file says so. Its output matrix may know some of the tokens only.

// Taps is how many of its target's hidden states a row of EAGLE-3 takes.
const Taps = 3

// Keys of files of EAGLE-3. Layers are those of the target before which its hidden states are taken; its number of
// layers stands for what the last one leaves.
const (
	eagleWidth, eagleNormed = "target_hidden_size", "norm_before_residual"
	EagleLayers             = "eagle3.extract_layers"
	EagleKnown              = "d2t" // the tensor that says which tokens the output matrix knows
)

func eagle3(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	if s.layers != 1 {
		p.faultf("%s: is %d, want 1: EAGLE-3 is one layer", p.key("block_count"), s.layers)
	}
	r := p.rope(&s, neighbours, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	b.Ignore(EagleKnown)
	b.Knows(p.options.Known)

	e := b.Embed("token_embd", s.vocab, s.width)
	target := b.Input(TargetRows, Taps*p.count(eagleWidth, maxWidth), false)
	x := b.Add(b.Linear(target, "fc", s.width), b.Input(OwnRows, s.width, false))
	b.Layer(0)
	h := b.RMSNorm(x, "attn_norm_2", s.eps)
	n := b.HeadJoin(b.RMSNorm(e, "attn_norm", s.eps), h, 1)
	if p.has(eagleNormed) && p.flag(eagleNormed) {
		x = h
	}
	x = b.Add(x, s.selfAttend(b, n, r, s.attention()))
	b.FFN()
	x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	s.head(b, x)
}
