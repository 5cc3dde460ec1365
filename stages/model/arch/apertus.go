package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Apertus. Paper: arXiv:2509.14233; compared with llama.cpp.
// Differs from Qwen 3: the feed-forward network has no gate, and xIELU with parameters by layer; RoPE is scaled as
// Llama 3's, by divisors.
func apertus(p *params, b *ir.Builder) {
	s := p.dense("attention.layer_norm_rms_epsilon")
	r := p.rope(&s, halves, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}
	a := p.xielu(s.layers)

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		b.Layer(l)
		x = b.Add(x, s.normedAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		b.FFN()
		up := b.Linear(b.RMSNorm(x, "ffn_norm", s.eps), "ffn_up", s.ffn)
		x = b.Add(x, b.Linear(b.XIELU(up, a[l]), "ffn_down", s.width))
	}
	s.head(b, x)
}

// xielu reads the parameters of xIELU, for each layer; its keys have no prefix. Files have the trained α, of which the
// softplus is taken, and to which β is added below 0.
func (p *params) xielu(layers int) []ir.XIELUArgs {
	beta, most := p.floats("xielu.beta", layers), p.floats("xielu.eps", layers)
	above, below := p.floats("xielu.alpha_p", layers), p.floats("xielu.alpha_n", layers)
	softplus := func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
	all := make([]ir.XIELUArgs, layers)
	for l := range all {
		all[l] = ir.XIELUArgs{Above: float32(softplus(above[l])), Below: float32(beta[l] + softplus(below[l])),
			Beta: float32(beta[l]), Most: float32(most[l])}
	}
	return all
}

// floats reads a finite number for each layer: one for all, or a list. The key has no prefix.
func (p *params) floats(key string, layers int) []float64 {
	all := make([]float64, layers)
	list, err := p.meta.Floats(key)
	if err != nil {
		one, err := p.meta.Float(key)
		if err != nil {
			p.faults = append(p.faults, err)
			return all
		}
		for range layers {
			list = append(list, float32(one))
		}
	}
	if len(list) < layers {
		p.faultf("%s: has %d layers, want %d", key, len(list), layers)
		return all
	}
	for l := range all {
		if x := float64(list[l]); math.IsNaN(x) || math.Abs(x) > math.MaxFloat32 {
			p.faultf("%s: is %v for layer %d, want a number", key, x, l)
		} else {
			all[l] = x
		}
	}
	return all
}
