package arch

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Nanbeige 4.2. Compared with llama.cpp.
// Differs from Llama: rows pass through all layers several times, and are normalised in between, unless the file says
// otherwise. Each time has keys and values of its own.
func nanbeige(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, neighbours, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	a := s.attention()
	a.Scale = float32(p.positiveOr("attention.scale", float64(a.Scale)))
	times := p.countOr("num_loops", maxLayers/s.layers, 1)
	between := !p.has("skip_loop_final_norm") || !p.flag("skip_loop_final_norm")

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers * times {
		b.Layer(l)
		if between && l > 0 && l%s.layers == 0 {
			b.Within("")
			x = b.RMSNorm(x, "output_norm", s.eps)
		}
		b.Within(fmt.Sprintf("blk.%d.", l%s.layers))
		x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, a))
		b.FFN()
		x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}
