package cpu

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// compile schedules every segment, places its values, takes the memory and binds the work to it.
func compile(d *device, p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	m := &model{device: d, config: c, program: p.Program, pos: make([]int, c.MaxRows), span: make([]int, c.MaxRows)}
	if err := m.compile(p.Only(c.Segments), handed(p)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// handed lists what each segment of the whole program hands on.
func handed(p *ir.Bound) [][]ir.Value {
	all := make([][]ir.Value, len(p.Segments))
	for s := range all {
		all[s] = p.Handed(s)
	}
	return all
}

func (m *model) compile(p *ir.Bound, handed [][]ir.Value) error {
	if err := m.layWeights(p); err != nil {
		return err
	}
	if err := m.layCaches(p); err != nil {
		return err
	}
	v := newValues(p)
	v.observed = m.config.Inputs != nil
	scheduled := make([][]phase, len(p.Segments))
	for i := range p.Segments {
		scheduled[i] = schedule(p, i, v)
	}
	layout := newLayout(p, v, scheduled, handed, m.config, m.device.set.Tiled())
	if err := m.layScratch(p, layout.size); err != nil {
		return err
	}
	if err := m.layStep(); err != nil {
		return err
	}
	if err := m.layStrips(); err != nil {
		return err
	}
	b := binder{m: m, p: p, layout: layout, known: map[preparedKey]*kernels.Acts{}}
	for i := range p.Segments {
		seg := segment{name: p.Segments[i].String()}
		for j := range scheduled[i] {
			seg.phases = append(seg.phases, b.phase(&scheduled[i][j]))
		}
		m.segments = append(m.segments, seg)
	}
	b.end()
	m.borders = layout.borders(handed)
	return nil
}

// binder turns scheduled phases into runners that know their memory.
type binder struct {
	m      *model
	p      *ir.Bound
	layout *layout
	known  map[preparedKey]*kernels.Acts
}

func (b *binder) phase(ph *phase) runner {
	switch ph.kind {
	case products:
		return b.product(ph)
	case attended:
		return b.attention(ph.items[0].node)
	case observed:
		return b.observation(ph)
	case expertProducts:
		return b.experts(ph)
	}
	c := &chain{m: b.m, wanted: ph.wanted}
	width := 1
	for i := range ph.items {
		c.ops = append(c.ops, b.op(&ph.items[i]))
		for _, v := range ph.items[i].reads() {
			width += b.p.Widths[v]
		}
	}
	c.grain = max(1, chainGrain/width)
	return c
}

// op binds an item of a chain.
func (b *binder) op(it *item) rowOp {
	n := it.node
	switch it.verb {
	case prepare:
		return b.prepare(it)
	case store:
		return b.store(n)
	}
	out := b.layout.place(n.Out)
	var in [2]place
	for i, v := range n.In {
		in[i] = b.layout.place(v)
	}
	switch n.Op {
	case ir.Embed:
		return &embedOp{out: out, w: &b.m.weights[n.W]}
	case ir.Norm:
		return b.norm(n, out, in[0])
	case ir.RoPE:
		return b.rope(n, out, in[0])
	case ir.GLU:
		return &gluOp{out: out, x: in[0], up: in[1], gated: len(n.In) == 2, act: n.Act}
	case ir.Add:
		return &addOp{out, in[0], in[1]}
	case ir.Mul:
		return &mulOp{out, in[0], in[1]}
	case ir.Scale:
		return &scaleOp{out, in[0], n.Factor}
	case ir.SoftCap:
		return &softCapOp{out, in[0], n.Factor}
	case ir.Rows:
		return &rowsOp{out, in[0]}
	case ir.Route:
		return &routerOp{out: out, x: in[0], args: n.Route, bias: b.vector(n.B)}
	case ir.Experts:
		return b.combine(n, out, in[1])
	}
	panic(fmt.Sprintf("cpu: %s is no operation on rows", n.Op))
}

// end adds what the last segment owes its caller: finite logits, or vectors, in the step's memory.
func (b *binder) end() {
	if b.layout.of[b.layout.values.root[b.p.Output]] == nil {
		return // somebody else computes the head
	}
	last := &b.m.segments[len(b.m.segments)-1]
	out := b.layout.place(b.p.Output)
	c := &chain{m: b.m, wanted: true, grain: 1}
	if !out.logits {
		logits := place{logits: true, stride: out.width, width: out.width}
		c.ops = append(c.ops, &scaleOp{logits, out, 1})
	}
	what := "the logits"
	if b.p.Segments[len(b.p.Segments)-1].Kind == ir.SegPool {
		what = "the vectors"
	}
	c.ops = append(c.ops, &finiteOp{out, what})
	last.phases = append(last.phases, c)
}

// vector is a weight's values, or nil.
func (b *binder) vector(r ir.Ref) []float32 {
	if r == ir.NoRef {
		return nil
	}
	return b.m.weights[r].vector
}

// prepare quantises activations; those that stay float32 are only checked.
func (b *binder) prepare(it *item) rowOp {
	in := b.layout.place(it.value)
	what := fmt.Sprintf("the input of %s", b.readers(it))
	if it.form == kernels.Plain {
		return &finiteOp{in, what}
	}
	return &quantizeOp{in: in, acts: b.acts(it.value, it.form), what: what}
}

// readers names the first product that reads a prepared value.
func (b *binder) readers(it *item) string {
	for s := range b.p.Segments {
		for i := range b.p.Segments[s].Nodes {
			n := &b.p.Segments[s].Nodes[i]
			for _, r := range matrices(n) {
				if n.In[0] == it.value && kernels.FormOf(b.p.Types[r]) == it.form {
					return b.p.Weights[r].Name
				}
			}
		}
	}
	return "nothing"
}

// matrices lists the weights that multiply a node's first input.
func matrices(n *ir.Node) []ir.Ref {
	switch n.Op {
	case ir.Linear:
		return []ir.Ref{n.W}
	case ir.Experts:
		return []ir.Ref{n.Experts.Gate, n.Experts.Up}
	}
	return nil
}
