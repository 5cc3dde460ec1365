package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Kimi K3. Compared with llama.cpp.
// Differs from Kimi Linear: what a block reads is a mixture of the residual stream and of what the stream was before
// (kimiPast); latent attention has a sigmoid gate of each value, and so have the delta networks, by one matrix; decays
// may have a bound; experts see fewer features than the model has, between two matrices; networks activate by SiTU.
func kimiK3(p *params, b *ir.Builder) {
	s, attends := p.hybrid("attention.layer_norm_rms_epsilon")
	m := p.kimiExperts(&s)
	l := p.latent(&s)
	l.rope = rope{}
	lead, d := p.leadingDense(), p.kimiDelta(&s)
	d.eps, d.negative = s.eps, true
	if p.has("kda.gate_lower_bound") {
		d.bounded(p)
	}
	r := p.kimiPast(&s, m.inner)

	b.Ignore("blk.0.attn_res_score.weight") // nothing was kept before it
	x := r.open(b, b.Embed("token_embd", s.vocab, s.width))
	for i := range s.layers {
		b.Layer(i)
		now := r.now(b, x, m, i)
		n := b.RMSNorm(r.mix(b, now, x, "attn_res_score"), "attn_norm", s.eps)
		var y ir.Value
		if attends(i) {
			if l.gates = 0; b.Has("attn_gate.weight") {
				l.gates = s.heads * l.value
			}
			y = l.attend(&s, b, n)
		} else {
			y = d.attend(&s, b, n)
		}
		x = r.after(b, x, now, y, i)
		b.FFN()
		now = b.Slice(x, 0, s.width)
		n = b.RMSNorm(r.mix(b, now, x, "ffn_res_score"), "ffn_norm", s.eps)
		if i < lead {
			x = r.with(b, b.Add(now, m.network(b, n, "ffn_gate", "ffn_up", "ffn_down", s.ffn)), x)
			continue
		}
		if b.Has("ffn_gate_shexp.weight") {
			now = b.Add(now, m.network(b, n, "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", m.shared))
		}
		x = b.HeadJoin(b.Slice(r.with(b, now, x), 0, r.before(s.width)), m.give(b, n, i), 1)
	}
	x = b.Rows(x)
	n := b.RMSNorm(r.mix(b, r.now(b, x, m, -1), x, "output_res_score"), "output_norm", s.eps)
	b.Head(n, "output", "token_embd")
}

// kimiExperts is a mixture of which experts have so many inner features, and whose networks activate by SiTU. The
// matrix that follows experts is not in their segment, which holds no others: see kimiPast.
type kimiExperts struct {
	mixture
	*shape
	inner     int
	latent    bool // there are matrices before and after experts
	beta, cap float32
	given     string // of what layer the stream has what experts gave beside it, as its names begin; empty: of none
}

func (p *params) kimiExperts(s *shape) *kimiExperts {
	m := &kimiExperts{mixture: p.biasedMixture(s, ir.RouteArgs{Scoring: ir.SigmoidEach}), shape: s, inner: s.width}
	if p.has("expert_latent_length") {
		if n := p.integer("expert_latent_length", 0, maxWidth); n > 0 {
			m.inner, m.latent = n, true
		}
	}
	m.shared = m.mixture.ffn * max(1, m.shared/m.mixture.ffn)
	m.beta = float32(p.positive("activation.situ_beta"))
	m.cap = float32(p.optional("activation.situ_linear_beta"))
	return m
}

// network is W_down·SiTU(W_gate·x, W_up·x).
func (m *kimiExperts) network(b *ir.Builder, x ir.Value, gate, up, down string, ffn int) ir.Value {
	g, u := b.Linear(x, gate, ffn), b.SoftCap(b.Linear(x, up, ffn), m.cap)
	return b.Linear(b.GLU(ir.Sigmoid, g, b.Mul(b.SoftCap(g, m.beta), u)), down, m.width)
}

// give is what a layer's experts give of x.
func (m *kimiExperts) give(b *ir.Builder, x ir.Value, layer int) ir.Value {
	in := x
	if m.latent {
		in = b.Linear(x, "ffn_routed_down", m.inner)
	}
	weights := m.weigh(b, x)
	m.given = layerName(layer)
	return b.ExpertsSiTU(in, weights, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", m.mixture.ffn, m.route.Used, m.beta, m.cap)
}

// kimiPast is the residual stream with what it was before: every so many layers it is kept as it is, and goes on from
// what attention gives alone. Blocks read a mixture of it and of all that was kept: by a softmax of their products,
// normalised, with weights of the block. The wide stream is the stream, what was kept, and what experts gave last.
type kimiPast struct {
	*shape
	every, room int // layers between what is kept; how many times that happens; 0: never
	kept        int // so far
	inner       int // features of what experts give
}

// mostKept bounds how wide the stream becomes, and how long a program.
const mostKept = 32

func (p *params) kimiPast(s *shape, inner int) *kimiPast {
	r := &kimiPast{shape: s, inner: inner}
	if r.every = p.integer("attn_res.block_size", 0, maxLayers); r.every > 0 {
		r.room = (s.layers + r.every - 1) / r.every
	}
	if r.room > mostKept {
		p.faultf("%s: is %d, and so %d layers keep the stream %d times: want at most %d", p.key("attn_res.block_size"),
			r.every, s.layers, r.room, mostKept)
		r.every, r.room = 0, 0
	}
	return r
}

// before is the features of the wide stream before what experts gave, of which the stream has width.
func (r *kimiPast) before(width int) int { return (1 + r.room) * width }

// open is the wide stream of a row's embedding.
func (r *kimiPast) open(b *ir.Builder, x ir.Value) ir.Value {
	y := x
	for b.Width(y) < r.before(r.width)+r.inner {
		y = b.HeadJoin(y, x, 1)
	}
	return b.Stream(b.Slice(y, 0, r.before(r.width)+r.inner))
}

// with is the wide stream x with another stream.
func (r *kimiPast) with(b *ir.Builder, now, x ir.Value) ir.Value {
	return b.HeadJoin(now, b.Slice(x, r.width, b.Width(x)-r.width), 1)
}

// now is the stream, with what experts gave it in the layer before. Names are layer's afterwards; −1: of none.
func (r *kimiPast) now(b *ir.Builder, x ir.Value, m *kimiExperts, layer int) ir.Value {
	y := b.Slice(x, 0, r.width)
	if m.given == "" {
		return y
	}
	b.Within(m.given)
	given := b.Slice(x, r.before(r.width), r.inner)
	if b.Has("ffn_routed_norm.weight") {
		given = b.RMSNorm(given, "ffn_routed_norm", r.eps)
	}
	if m.latent {
		given = b.Linear(given, "ffn_routed_up", r.width)
	}
	m.given = ""
	if b.Within(""); layer >= 0 {
		b.Within(layerName(layer))
	}
	return b.Add(y, given)
}

// mix is the mixture of now and of what x has kept. The softmax goes on from one part to the next: d is by how much a
// part's logarithm exceeds that of the sum of those before it.
func (r *kimiPast) mix(b *ir.Builder, now, x ir.Value, name string) ir.Value {
	if r.kept == 0 {
		return now
	}
	logit := func(part ir.Value) ir.Value { return b.Linear(b.BareHeadNorm(part, r.width, r.eps), name, 1) }
	y := b.Slice(x, r.width, r.width)
	sum := logit(y)
	for i := 1; i <= r.kept; i++ {
		part := now
		if i < r.kept {
			part = b.Slice(x, (1+i)*r.width, r.width)
		}
		d := b.Add(logit(part), b.Scale(sum, -1))
		y = joined(b, part, y, d)
		sum = b.Add(sum, b.Act(ir.Softplus, d))
	}
	return y
}

// after is the wide stream x after a layer's attention, which gave y: of some layers now is kept, and y goes on alone.
func (r *kimiPast) after(b *ir.Builder, x, now, y ir.Value, layer int) ir.Value {
	if r.every == 0 || layer%r.every != 0 {
		return r.with(b, b.Add(now, y), x)
	}
	if r.kept > 0 {
		y = b.HeadJoin(y, b.Slice(x, r.width, r.kept*r.width), 1)
	}
	r.kept++
	y = b.HeadJoin(y, now, 1)
	from := (1 + r.kept) * r.width
	return b.HeadJoin(y, b.Slice(x, from, b.Width(x)-from), 1)
}
