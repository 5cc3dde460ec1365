//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// Span is the rows of one sequence in a step, as kernels read it.
type Span struct {
	Row, Rows uint32
	Position  uint32 // of the first
	Table     uint32 // index in the block tables of its sequence's first block
}

// Recurrent is what kernels take that go on from states: where a layer's are, by block, and whose rows there are.
type Recurrent struct {
	States uint64
	Spans  uint64 // of Span
	N      int    // spans
	Tables uint64 // of uint32 block numbers
}

// Conv is a CausalConv.
type Conv struct {
	X, Y, Weights, Bias uint64 // Weights [Channels][Size]; Bias 0: none
	Channels, Size      int
	XStride, YStride    int // in float32
	Rows                int // most of a span
}

// convRows is how many rows of a span a workgroup of conv.comp takes.
const convRows = 64

// Conv records it. Y is not X.
func (k *Kernels) Conv(r *vk.Recording, c *Conv, of *Recurrent) error {
	if c.Size < 2 || c.Size > convRows+1 {
		return fmt.Errorf("a convolution over %d positions has no kernel: want 2 to %d", c.Size, convRows+1)
	}
	kernel, err := k.kernel(shaders.Conv, shaders.ConvConstants{Kept: uint32(c.Size - 1)}.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.ConvPush{X: c.X, Y: c.Y, Weights: c.Weights, Bias: c.Bias, States: of.States,
		Spans: of.Spans, Tables: of.Tables, Channels: uint32(c.Channels), XStride: uint32(c.XStride),
		YStride: uint32(c.YStride)})
	r.Dispatch(uint32((c.Channels+63)/64), uint32(of.N), uint32((c.Rows+convRows-1)/convRows))
	return nil
}

// rowsAt is float32 rows.
type rowsAt struct {
	at     uint64
	stride int
}

// Scan is an SSMScan or a DeltaRule.
type Scan struct {
	Args               *ir.ScanArgs
	Delta              bool      // it is a DeltaRule
	In                 [5]rowsAt // q, k, v, δ, β
	Y                  rowsAt
	Decay, Shift, Skip uint64 // by head; Skip, D, is 0 for none
}

// Scan records it.
func (k *Kernels) Scan(r *vk.Recording, s *Scan, of *Recurrent) error {
	a := s.Args
	c := shaders.ScanConstants{Keys: uint32(a.KDim), Values: uint32(a.VDim), Groups: uint32(a.Groups),
		Tiled: bit(a.Tiled), Delta: bit(s.Delta)}
	kernel, err := k.kernel(shaders.Scan, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.ScanPush{Q: s.In[0].at, K: s.In[1].at, V: s.In[2].at, Step: s.In[3].at, Beta: s.In[4].at,
		Y: s.Y.at, Decay: s.Decay, Shift: s.Shift, Skip: s.Skip, States: of.States, Spans: of.Spans, Tables: of.Tables,
		QStride: uint32(s.In[0].stride), KStride: uint32(s.In[1].stride), VStride: uint32(s.In[2].stride),
		StepStride: uint32(s.In[3].stride), BetaStride: uint32(s.In[4].stride), YStride: uint32(s.Y.stride),
		Scale: a.Scale})
	r.Dispatch(uint32((a.VDim+7)/8), uint32(a.Heads), uint32(of.N))
	return nil
}

// convolve plans a CausalConv.
func (l *planner) convolve(n *ir.Node) {
	a, y, size := l.place(n.In[0]), l.put(n), l.p.Weights[n.W].Cols
	c := Conv{Weights: l.m.vector(n.W), Bias: l.m.vector(n.B), Channels: l.p.Widths[n.Out], Size: size}
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		c := c
		c.X, c.XStride, c.Y, c.YStride, c.Rows = x.at(a), stride(a.b), x.at(y), stride(y.b), x.n
		return x.k.Conv(x.r, &c, x.recurrent(n))
	}})
}

// scan plans an SSMScan or a DeltaRule.
func (l *planner) scan(n *ir.Node) {
	s := Scan{Args: n.Scan, Delta: n.Op == ir.DeltaRule, Decay: l.m.vector(n.W), Shift: l.m.vector(n.B),
		Skip: l.m.vector(n.Scan.D)}
	var in []place
	var reads []*live.Buffer
	for _, v := range n.In {
		in = append(in, l.place(v))
		reads = append(reads, l.place(v).b)
	}
	y := l.put(n)
	l.launch(launch{reads: reads, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		s := s
		for i, a := range in {
			s.In[i] = rowsAt{x.at(a), stride(a.b)}
		}
		s.Y = rowsAt{x.at(y), stride(y.b)}
		return x.k.Scan(x.r, &s, x.recurrent(n))
	}})
}

// recurrent is what a node goes on from.
func (x *recorder) recurrent(n *ir.Node) *Recurrent {
	class := x.m.program.States[n.State].Class
	return &Recurrent{States: x.m.states[n.State], Spans: x.s.at(&x.s.spans[class]), N: x.shape.spans,
		Tables: x.s.tables.Address}
}

// layStates takes memory for what nodes here keep of sequences, by block of their class.
func (m *model) layStates(p *ir.Bound) error {
	m.states = make([]uint64, len(p.States))
	_, _, used := p.Used()
	for i, l := range p.States {
		if !used[i] {
			continue
		}
		b, err := m.memory.take(vk.Local, uint64(backend.StateBytes(l))*uint64(m.config.Blocks[l.Class]), "recurrent states")
		if err != nil {
			return err
		}
		m.states[i] = b.Address
		m.account.KV += int64(b.Size)
	}
	return nil
}
