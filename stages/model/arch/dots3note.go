package arch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// dots.3 note. Compared with llama.cpp.
// Differs from DeepSeek V3.2: most layers have a window, and latent attention of sizes and a base of RoPE of their own;
// layers have numbers of heads of their own, a norm of the key that RoPE turns, and a sigmoid gate of one feature a
// head. Indexers are those of the other layers: see within. Heads that predict tokens further on are left out.
func dots3Note(p *params, b *ir.Builder) {
	s, heads := p.ownHeads("attention.layer_norm_rms_epsilon")
	s.ffn = p.count("feed_forward_length", maxFFN)
	heads(&s, 0)
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	far := p.latent(&s)
	far.keyNorm = true
	near := p.nearLatent(&s, far)
	lead, local := p.leadingDense(), p.local(s.layers, 4)
	p.within(b, s.layers, 1)
	if p.options.Head {
		p.faultf("%s: heads of models with windows are not supported", p.key(nextKey))
		return
	}
	x, layers := p.trunk(&s, b)
	for _, i := range layers {
		heads(&s, i)
		l := far
		if local(i) {
			l = near
		}
		l.args.Heads, l.gates = s.heads, s.heads
		b.Layer(i)
		x = b.Add(x, l.attend(&s, b, b.RMSNorm(x, "attn_norm", s.eps)))
		b.FFN()
		x = b.Add(x, m.behind(lead, i, &s, b, b.RMSNorm(x, "ffn_norm", s.eps)))
	}
	s.head(b, x)
}

// nearLatent is the latent attention of layers with a window, which has sizes of its own.
func (p *params) nearLatent(s *shape, far latent) latent {
	const keyName = "attention.key_length_mla_swa"
	l := far
	l.rank, l.value = p.count("attention.kv_lora_rank_swa", maxWidth), p.count("attention.value_length_mla_swa", maxHeadDim)
	key := p.count(keyName, maxHeadDim)
	if key <= l.rot {
		p.faultf("%s: is %d, want more than %s, %d", p.key(keyName), key, p.key("rope.dimension_count"), l.rot)
		key = l.rot + 1
	}
	l.still = key - l.rot
	l.rope = p.scaled(p.swaRope(s, p.plainRope(s, neighbours, 10000)))
	l.args = ir.AttendArgs{Heads: s.heads, KVHeads: 1, KDim: l.rank + l.rot, VDim: l.rank, Window: p.window(),
		Scale: float32(1 / math.Sqrt(float64(key)))}
	return l
}
