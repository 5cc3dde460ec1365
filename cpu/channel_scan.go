package cpu

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// byChannel says whether a node is a scan of heads of one feature, of which many are computed side by side.
func byChannel(n *ir.Node) bool { return n.Op == ir.SSMScan && n.Scan.ByKey }

// channelScan is an SSMScan by key. A chunk is some channels of a span, whose rows it takes one after another. The
// state is by row of the channels' matrices, then channel, and so is A.
type channelScan struct {
	ex          *execution
	args        *ir.ScanArgs
	out         place
	in          [4]place // q, k, v, δ
	state       *state
	decay       []float32
	shift, skip []float32
}

func (s *channelScan) parts() int { return (s.args.Heads + convChannels - 1) / convChannels }

func (s *channelScan) chunks() int { return len(s.ex.step.Spans) * s.parts() }

// channels are some of a span's, with the memory of a worker.
type channels struct {
	from, n           int
	state             []float32 // of the running block, or trial
	stride            int       // from row to row of the state
	trial             []float32
	delta, add, decay []float32 // of the running row
}

func (s *channelScan) run(worker, chunk int) {
	span := &s.ex.step.Spans[chunk/s.parts()]
	c := channels{from: chunk % s.parts() * convChannels}
	c.n = min(convChannels, s.args.Heads-c.from)
	memory := s.ex.workers[worker].state
	c.delta, c.add, c.decay, c.trial = memory[:c.n], memory[c.n:][:c.n], memory[2*c.n:][:c.n], memory[3*c.n:]
	block, kept := int32(-1), span.Kept()
	for i := range span.Rows {
		pos := span.Pos + i
		if b := s.state.block(span, pos); b != block && i < kept {
			s.begin(&c, span, pos, b)
			block = b
		}
		if i == kept { // later rows are proposed: they leave nothing in the block
			for k := range s.args.KDim {
				copy(c.trial[k*c.n:][:c.n], c.state[k*c.stride:])
			}
			c.state, c.stride = c.trial, c.n
		}
		s.row(&c, span.Row+i)
	}
}

// begin sets a block's state to what the row at position pos goes on from.
func (s *channelScan) begin(c *channels, span *backend.Span, pos int, block int32) {
	var before []float32
	if pos > 0 {
		before = s.state.at(s.state.block(span, pos-1))[c.from:]
	}
	c.state, c.stride = s.state.at(block)[c.from:], s.args.Heads
	for k := range s.args.KDim {
		line := c.state[k*c.stride:][:c.n]
		if pos == 0 {
			clear(line)
		} else {
			copy(line, before[k*c.stride:])
		}
	}
}

// row updates the state by one row, and reads it.
func (s *channelScan) row(c *channels, row int) {
	isa := s.ex.device.isa
	at := func(i int) []float32 { return s.ex.at(&s.in[i], row) }
	q, k, v := at(0), at(1), at(2)[c.from:][:c.n]
	for i, x := range at(3)[c.from:][:c.n] {
		c.delta[i] = float32(softplus(float64(x) + float64(s.shift[c.from+i])))
	}
	isa.Mul(c.add, c.delta, v)
	y := s.ex.at(&s.out, row)[c.from:][:c.n]
	for j := range s.args.KDim {
		isa.Mul(c.decay, c.delta, s.decay[j*s.args.Heads+c.from:][:c.n])
		isa.Exp(c.decay, c.decay)
		line := c.state[j*c.stride:][:c.n]
		isa.Mul(line, line, c.decay)
		isa.Merge(line, c.add, 1, k[j])
		if j == 0 {
			isa.Scale(y, line, q[j])
		} else {
			isa.Merge(y, line, 1, q[j])
		}
	}
	isa.Scale(y, y, s.args.Scale)
	if s.skip != nil {
		isa.Mul(c.add, v, s.skip[c.from:][:c.n])
		isa.Add(y, y, c.add)
	}
}

func (b *binder) channelScan(n *ir.Node) *channelScan {
	s := &channelScan{ex: &b.m.execution, args: n.Scan, out: b.layout.place(n.Out), state: &b.m.states[n.State],
		decay: b.vector(n.W), shift: b.vector(n.B), skip: b.vector(n.Scan.D)}
	for i, v := range n.In {
		s.in[i] = b.layout.place(v)
	}
	return s
}
