package cpu

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// convChannels is how many channels a chunk has at most.
const convChannels = 512

// convolution is a CausalConv. A chunk is some channels of a span: products with the inputs of the last positions, the
// oldest first, are added one after another, and the bias at last, for each row alone. The state is the inputs of the
// positions before, the oldest first. A Previous is one without weights: a row's result is the input before it.
type convolution struct {
	ex     *execution
	out, x place
	state  *state
	kept   int       // positions in the state
	every  int       // positions from one weight to the next
	w      []float32 // by position, then channel; nil: of a Previous
	bias   []float32
}

func (c *convolution) parts() int { return (c.out.width + convChannels - 1) / convChannels }

func (c *convolution) chunks() int { return len(c.ex.step.Spans) * c.parts() }

func (c *convolution) run(worker, chunk int) {
	span := &c.ex.step.Spans[chunk/c.parts()]
	from := chunk % c.parts() * convChannels
	n := min(convChannels, c.out.width-from)
	memory := c.ex.workers[worker].state
	before, product := memory[:c.kept*n], memory[c.kept*n:][:n]
	c.load(before, span, from, n)
	for i := range span.Rows {
		y := c.ex.at(&c.out, span.Row+i)[from:][:n]
		if c.w == nil {
			copy(y, c.input(before, span, i-1, from, n))
			continue
		}
		isa := c.ex.device.isa
		for j := range c.kept/c.every + 1 {
			w := c.w[j*c.out.width+from:][:n]
			if x := c.input(before, span, i-c.kept+j*c.every, from, n); j == 0 {
				isa.Mul(y, x, w)
			} else {
				isa.Mul(product, x, w)
				isa.Add(y, y, product)
			}
		}
		if c.bias != nil {
			isa.Add(y, y, c.bias[from:][:n])
		}
	}
	c.store(before, span, from, n)
}

// load copies the channels [from, from+n) of the positions before a span out of the state.
func (c *convolution) load(before []float32, span *backend.Span, from, n int) {
	if span.Pos == 0 {
		clear(before)
		return
	}
	state := c.state.at(c.state.block(span, span.Pos-1))
	for j := range c.kept {
		copy(before[j*n:][:n], state[j*c.out.width+from:])
	}
}

// input is the channels of row i of a span; for i below 0, of a position before the span.
func (c *convolution) input(before []float32, span *backend.Span, i, from, n int) []float32 {
	if i < 0 {
		return before[(i+c.kept)*n:][:n]
	}
	return c.ex.at(&c.x, span.Row+i)[from:][:n]
}

// store writes to each block the inputs of the last positions before the block's end, or before the end of the span's
// kept rows.
func (c *convolution) store(before []float32, span *backend.Span, from, n int) {
	for i, kept := 0, span.Kept(); i < kept; {
		end := min(kept, i+backend.BlockSize-(span.Pos+i)%backend.BlockSize)
		state := c.state.at(c.state.block(span, span.Pos+i))
		for j := range c.kept {
			copy(state[j*c.out.width+from:][:n], c.input(before, span, end-c.kept+j, from, n))
		}
		i = end
	}
}

func (b *binder) convolution(n *ir.Node) *convolution {
	c := &convolution{ex: &b.m.execution, out: b.layout.place(n.Out), x: b.layout.place(n.In[0]),
		state: &b.m.states[n.State], bias: b.vector(n.B), kept: 1, every: max(n.Every, 1)}
	if n.Op == ir.CausalConv {
		c.w, c.kept = b.vector(n.W), (b.m.weights[n.W].cols-1)*c.every
	}
	return c
}
