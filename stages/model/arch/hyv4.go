package arch

import "github.com/sluice-ai/sluice/internal/ir"

// Hunyuan 4. Compared with llama.cpp.
// Differs from DeepSeek V3: there are several streams side by side, which blocks read and write by sigmoids that follow
// from all of them (coupled); heads have sinks, and a gate for each value; experts have limits by layer. Where the file
// has indexers: see within.
func hyV4(p *params, b *ir.Builder) {
	s := p.decoder("attention.layer_norm_rms_epsilon")
	m := p.biasedMixture(&s, ir.RouteArgs{Scoring: ir.SigmoidEach})
	m.act = ir.ClippedSiLU
	limits := p.limits("swiglu_clamp_exp", s.layers)
	l := p.latent(&s)
	l.sinks, l.gates = true, s.heads*l.value
	lead := p.leadingDense()
	if p.has("attention.indexer.top_k") {
		p.within(b, s.layers, 1)
	}
	c := coupled{hyper: hyper{shape: &s, streams: p.integer("hyper_connection.count", 2, 64)},
		least:  float32(p.positive("hyper_connection.epsilon")),
		factor: float32(p.positive("hyper_connection.magnitude"))}

	x := b.Stream(c.spread(b, b.Embed("token_embd", s.vocab, s.width), nil))
	for i := range s.layers {
		b.Layer(i)
		n, by := c.couple(b, x, "hc_attn", 2)
		x = b.Add(x, c.write(b, l.attend(&s, b, b.RMSNorm(n, "attn_norm", s.eps)), by))
		b.FFN()
		n, by = c.couple(b, x, "hc_ffn", 2)
		m.limit = limits[i]
		x = b.Add(x, c.write(b, m.behind(lead, i, &s, b, b.RMSNorm(n, "ffn_norm", s.eps)), by))
	}
	n, _ := c.couple(b, b.Rows(x), "output_hc", 1)
	b.Head(b.RMSNorm(n, "output_norm", s.eps), "output", "token_embd")
}

// coupled is streams whose sigmoids, of reading and of writing, follow from all of them by one matrix. Each stream is
// read, and written, by least more than its sigmoid says; what is written is multiplied by factor.
type coupled struct {
	hyper
	least, factor float32
}

// couple is what a block reads of the streams, and by what its result is multiplied for each of them, if the matrix is
// for two kinds of sigmoids.
func (c *coupled) couple(b *ir.Builder, x ir.Value, name string, kinds int) (read ir.Value, by []ir.Value) {
	all := b.Linear(b.BareHeadNorm(x, c.all(), c.eps), name+"_fn", kinds*c.streams)
	all = b.Affine(b.AffineHeads(all, name+"_scale.weight", kinds), "", 0, name+"_base.weight", 1)
	all = b.Act(ir.Sigmoid, all)
	if kinds > 1 {
		for i := range c.streams {
			by = append(by, b.Slice(all, c.streams+i, 1))
		}
	}
	return c.sum(b, x, all), by
}

// sum is the sum of streams, each times a sigmoid and a little more.
func (c *coupled) sum(b *ir.Builder, x, sigmoids ir.Value) (read ir.Value) {
	for i := range c.streams {
		stream := b.Slice(x, i*c.width, c.width)
		part := b.Add(b.Mul(stream, b.Slice(sigmoids, i, 1)), b.Scale(stream, c.least))
		if i == 0 {
			read = part
		} else {
			read = b.Add(read, part)
		}
	}
	return read
}

// write is y for each stream.
func (c *coupled) write(b *ir.Builder, y ir.Value, by []ir.Value) ir.Value {
	return b.Add(c.spread(b, b.Scale(y, c.factor), by), c.spread(b, b.Scale(y, c.least), nil))
}
