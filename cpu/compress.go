package cpu

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// compression is a Compress. A chunk is some channels of a span. Each row takes the state of the row before, whatever
// else is in the step: the rows of a span come one after another.
type compression struct {
	ex             *execution
	out            place
	scores, values place
	state          *state
	added          []float32 // the table, row after row
	every          int
}

func (c *compression) parts() int { return (c.out.width + convChannels - 1) / convChannels }

func (c *compression) chunks() int { return len(c.ex.step.Spans) * c.parts() }

func (c *compression) run(worker, chunk int) {
	span := &c.ex.step.Spans[chunk/c.parts()]
	from := chunk % c.parts() * convChannels
	to := min(from+convChannels, c.out.width)
	m := ir.Means{State: c.ex.workers[worker].state[:c.state.Values]}
	if span.Pos == 0 {
		c.each(m.State, nil, from, to)
	} else {
		c.each(m.State, c.state.at(c.state.block(span, span.Pos-1)), from, to)
	}
	for i, kept := 0, span.Kept(); i < span.Rows; i++ {
		row, pos := span.Row+i, span.Pos+i
		m.Y, m.Scores, m.Values = c.ex.at(&c.out, row), c.ex.at(&c.scores, row), c.ex.at(&c.values, row)
		m.Added = c.added[pos%c.every*len(m.Scores):]
		m.Compress(from, to, pos%c.every == 0)
		if i == kept-1 || i < kept && pos%backend.BlockSize == backend.BlockSize-1 {
			c.each(c.state.at(c.state.block(span, pos)), m.State, from, to)
		}
	}
}

// each copies some channels of a state; of none, it clears them.
func (c *compression) each(to, state []float32, first, end int) {
	for at := 0; at < c.state.Values; at += c.out.width {
		if state == nil {
			clear(to[at+first : at+end])
		} else {
			copy(to[at+first:at+end], state[at+first:at+end])
		}
	}
}

func (b *binder) compression(n *ir.Node) *compression {
	return &compression{ex: &b.m.execution, out: b.layout.place(n.Out), scores: b.layout.place(n.In[0]),
		values: b.layout.place(n.In[1]), state: &b.m.states[n.State], added: b.vector(n.W), every: n.Every}
}
