package arch

import "github.com/sluice-ai/sluice/internal/ir"

// DeciLM and Llama 3.1 Nemotron 51B, 49B and 253B. Paper: arXiv:2411.19146; compared with llama.cpp.
// Differs from Llama: layers have numbers of heads and features of their own; one may have a matrix instead of
// attention, no attention, or no feed-forward network.
func deci(p *params, b *ir.Builder) {
	s := shape{
		layers: p.count("block_count", maxLayers),
		width:  p.count("embedding_length", maxWidth),
		vocab:  p.vocab(),
		eps:    float32(p.positive("attention.layer_norm_rms_epsilon")),
	}
	p.context = p.count("context_length", maxContext)
	heads := p.byLayerFrom(0, "attention.head_count", s.layers, maxHeads)
	kvHeads := p.byLayerFrom(0, "attention.head_count_kv", s.layers, maxHeads)
	ffn := p.byLayerFrom(0, "feed_forward_length", s.layers, maxFFN)
	s.kDim = p.countOr("attention.key_length", maxHeadDim, s.width/max(heads[0], 1))
	s.vDim = s.kDim
	r := p.rope(&s, neighbours, 10000)
	if b.Has("rope_freqs.weight") {
		r.factors = "rope_freqs.weight"
	}

	x := b.Embed("token_embd", s.vocab, s.width)
	for l := range s.layers {
		s.heads, s.kvHeads, s.ffn = heads[l], kvHeads[l], ffn[l]
		if s.kvHeads > 0 && s.heads%s.kvHeads != 0 {
			p.faultf("%s: is %d for layer %d, want a divisor of %s, %d", p.key("attention.head_count_kv"), s.kvHeads, l,
				p.key("attention.head_count"), s.heads)
			s.kvHeads = 0
		}
		b.Layer(l)
		switch {
		case s.heads == 0:
		case s.kvHeads == 0:
			x = b.Add(x, b.Linear(b.RMSNorm(x, "attn_norm", s.eps), "attn_output", s.width))
		default:
			x = b.Add(x, s.selfAttend(b, b.RMSNorm(x, "attn_norm", s.eps), r, s.attention()))
		}
		if s.ffn > 0 {
			b.FFN()
			x = b.Add(x, s.swiglu(b, b.RMSNorm(x, "ffn_norm", s.eps)))
		}
	}
	s.head(b, x)
}
