package arch

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// DeepSeek V2 and V3, R1, and what is converted as them. Papers: arXiv:2405.04434, arXiv:2412.19437; checked against
// transformers, modeling_deepseek_v2.py and modeling_deepseek_v3.py.
// Differs from Llama: multi-head latent attention, below; the first layers are dense; experts by a softmax (V2) or by
// sigmoids, in groups, and a bias that only the choice sees (V3); beside them a network that all rows share. YaRN
// sharpens the scores, and leaves cos and sin alone. mistral4 is the same; its queries sharpen with their position.
// DeepSeek V3.2 (deepseek32) and GLM 5 (glm-dsa) are compared with llama.cpp: see within.
func deepseek2(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	scoring := ir.SoftmaxAll
	if p.arch == "glm-dsa" {
		scoring = ir.SigmoidEach
	}
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: scoring})
	l := p.latent(&s)
	lead := p.leadingDense()
	if p.arch == "deepseek32" || p.arch == "glm-dsa" {
		p.within(b, s.layers, 1)
	}

	x, layers := p.trunk(&s, b)
	for _, i := range layers {
		b.Layer(i)
		x = b.Add(x, l.attend(&s, b, b.RMSNorm(x, "attn_norm", s.eps)))
		b.FFN()
		n := b.RMSNorm(x, "ffn_norm", s.eps)
		if i < lead {
			x = b.Add(x, s.swiglu(b, n))
		} else {
			x = b.Add(x, m.besideShared(b, n))
		}
	}
	s.head(b, x)
}

// within keeps models that have an indexer (arXiv:2512.02556), which chooses the blocks of so many positions that a row
// sees, to as many positions as it chooses: up to there a row sees all, and what the indexer is made of is not needed.
// A head's layer has an indexer, too, and sees no more.
func (p *params) within(b *ir.Builder, layers, block int) {
	const key = "attention.indexer.top_k"
	chosen := p.count(key, maxContext>>8)
	most := block * chosen
	p.context = min(p.context, most)
	if p.options.Context > most {
		p.faultf("%s: is %d, and contexts of more than %d positions, as the %d asked for, are not supported yet: ask for fewer",
			p.key(key), chosen, most, p.options.Context)
	}
	p.ignoreIndexers(b, layers)
}

// ignoreIndexers leaves the tensors of indexers alone.
func (p *params) ignoreIndexers(b *ir.Builder, layers int) {
	for l := range layers {
		b.Ignore(fmt.Sprintf("blk.%d.indexer.", l))
	}
}

// latent is multi-head latent attention (arXiv:2405.04434, section 2.1): positions keep one vector, from which all
// heads' keys and values come by matrices, and one key that RoPE turns. It is recorded in its absorbed form: the matrix
// of keys multiplies queries, that of values what heads attended to, so that all of them read the same vector. Files of
// before April 2025 have both matrices in one, which cannot be absorbed as it lies: of them heads keep keys and values.
type latent struct {
	early      bool
	rank       int  // features of the latent vector
	queryRank  int  // queries come from so many features; 0: from the row itself
	still, rot int  // features of a head that RoPE leaves alone, and turns
	value      int  // features of a head's value
	gates      int  // features of a sigmoid gate of what heads attended to: of each, or of each value; 0: there is none
	sinks      bool // each head's softmax has a sink
	keyNorm    bool // the key that RoPE turns has a norm
	rope       rope
	temper     tempering
	args       ir.AttendArgs
}

func (p *params) latent(s *shape) latent {
	keyName, valueName := "attention.key_length_mla", "attention.value_length_mla"
	early := !p.has(keyName) && !p.has(valueName)
	if early {
		keyName, valueName = "attention.key_length", "attention.value_length"
	}
	l := latent{
		early: early,
		rank:  p.count("attention.kv_lora_rank", maxWidth),
		rot:   p.count("rope.dimension_count", maxHeadDim),
		value: p.count(valueName, maxHeadDim),
	}
	if p.has("attention.q_lora_rank") {
		l.queryRank = p.integer("attention.q_lora_rank", 0, maxWidth)
	}
	key := p.count(keyName, maxHeadDim)
	if key <= l.rot {
		p.faultf("%s: is %d, want more than %s, %d", p.key(keyName), key,
			p.key("rope.dimension_count"), l.rot)
		key = l.rot + 1
	}
	l.still = key - l.rot
	l.temper = p.tempering()
	s.kDim = l.rot // what RoPE sees of a head
	l.rope = p.rope(s, neighbours, 10000)
	l.args = ir.AttendArgs{
		Heads: s.heads, KVHeads: 1, KDim: l.rank + l.rot, VDim: l.rank,
		Scale: float32(1 / math.Sqrt(float64(key))),
	}
	if early {
		l.args.KVHeads, l.args.KDim, l.args.VDim = s.heads, key, l.value
	}
	if p.has("rope.scaling.yarn_log_multiplier") {
		sharper := 1 + p.positive("rope.scaling.yarn_log_multiplier")*math.Log(max(p.factor(), 1))
		l.args.Scale *= float32(sharper * sharper)
		l.rope.args.Mscale = 1
	}
	return l
}

func (l *latent) attend(s *shape, b *ir.Builder, x ir.Value) ir.Value {
	query, name := x, "attn_q"
	if l.queryRank > 0 {
		query, name = b.RMSNorm(b.Linear(x, "attn_q_a", l.queryRank), "attn_q_a_norm", s.eps), "attn_q_b"
	}
	q := b.Linear(query, name, s.heads*(l.still+l.rot))
	still, turned := b.HeadSlice(q, s.heads, 0, l.still), l.rope.turn(b, b.HeadSlice(q, s.heads, l.still, l.rot))
	kv := b.Linear(x, "attn_kv_a_mqa", l.rank+l.rot)
	v := b.RMSNorm(b.Slice(kv, 0, l.rank), "attn_kv_a_norm", s.eps)
	key := b.Slice(kv, l.rank, l.rot)
	if l.keyNorm {
		key = b.RMSNorm(key, "attn_k_norm", s.eps)
	}
	key = l.rope.turn(b, key)
	if l.early {
		both := b.Linear(v, "attn_kv_b", s.heads*(l.still+l.value))
		k := b.HeadJoinShared(b.HeadSlice(both, s.heads, 0, l.still), key, s.heads)
		v = b.HeadSlice(both, s.heads, l.still, l.value)
		q = l.temper.sharpen(b, b.HeadJoin(still, turned, s.heads))
		return b.Linear(l.gated(b, x, b.Attend(q, k, v, l.args)), "attn_output", s.width)
	}
	q = l.temper.sharpen(b, b.HeadJoin(b.HeadLinear(still, "attn_k_b", s.heads, l.rank), turned, s.heads))
	attend := b.Attend
	if l.sinks {
		attend = func(q, k, v ir.Value, a ir.AttendArgs) ir.Value { return b.AttendSinks(q, k, v, "attn_sinks", a) }
	}
	attended := attend(q, b.HeadJoin(v, key, 1), v, l.args)
	y := b.HeadLinear(attended, "attn_v_b", s.heads, l.value)
	return b.Linear(l.gated(b, x, y), "attn_output", s.width)
}

// gated multiplies what heads attended to by the gate that x has, if there is one.
func (l *latent) gated(b *ir.Builder, x, attended ir.Value) ir.Value {
	if l.gates == 0 {
		return attended
	}
	return b.Mul(attended, b.Act(ir.Sigmoid, b.Linear(x, "attn_gate", l.gates)))
}
