//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
)

// convRows is how many rows of a span a block of conv.cu takes.
const convRows = 64

type convArgs struct {
	x, y, weights, bias, states, spans, tables uint64
	channels, xStride, yStride, kept           uint32
}

// conv records a kernel.Conv. Y is not X.
func (k *Kernels) conv(r *recording, c *kernel.Conv) error {
	of := &c.Of
	if c.Size < 2 || c.Size > convRows+1 {
		return fmt.Errorf("a convolution over %d positions has no kernel: want 2 to %d", c.Size, convRows+1)
	}
	grid := [3]uint32{parts(c.Channels, 64), uint32(of.N), parts(c.Rows, convRows)}
	return launch(k, r, "conv", "conv", grid, 64, 0, &convArgs{x: c.X, y: c.Y, weights: c.Weights, bias: c.Bias,
		states: of.States, spans: of.Spans, tables: of.Tables, channels: uint32(c.Channels), xStride: uint32(c.XStride),
		yStride: uint32(c.YStride), kept: uint32(c.Size - 1)})
}

// scanArgs is the arguments of scan.cu.
// Wide: they are the arguments of a kernel.
type scanArgs struct {
	q, k, v, step, beta, y, decay, shift, skip, states, spans, tables uint64
	qStride, kStride, vStride, stepStride, betaStride, yStride        uint32
	scale                                                             float32
	keys, values, groups, tiled, delta                                uint32
}

// scanKeys are the numbers of key features of a head for which scan.cu has kernels: each takes heads of so many or
// fewer.
var scanKeys = [...]int{16, 64, 128, 256}

func (k *Kernels) scan(r *recording, s *kernel.Scan) error {
	a, of := s.Args, &s.Of
	for _, most := range scanKeys {
		if a.KDim > most {
			continue
		}
		grid := [3]uint32{parts(a.VDim, 8), uint32(a.Heads), uint32(of.N)}
		return launch(k, r, fmt.Sprintf("scan_%d", most), "scan", grid, 64, 0, &scanArgs{q: s.In[0].At, k: s.In[1].At,
			v: s.In[2].At, step: s.In[3].At, beta: s.In[4].At, y: s.Y.At, decay: s.Decay, shift: s.Shift, skip: s.Skip,
			states: of.States, spans: of.Spans, tables: of.Tables, qStride: uint32(s.In[0].Stride),
			kStride: uint32(s.In[1].Stride), vStride: uint32(s.In[2].Stride), stepStride: uint32(s.In[3].Stride),
			betaStride: uint32(s.In[4].Stride), yStride: uint32(s.Y.Stride), scale: a.Scale, keys: uint32(a.KDim),
			values: uint32(a.VDim), groups: uint32(a.Groups), tiled: bit(a.Tiled), delta: bit(s.Delta)})
	}
	return fmt.Errorf("a state of %d keys has no kernel", a.KDim)
}
