//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// convRows is how many rows of a span a workgroup of conv.comp takes.
const convRows = 64

// Conv records a kernel.Conv. Y is not X.
func (k *Kernels) Conv(r *vk.Recording, c *kernel.Conv) error {
	of := &c.Of
	if c.Size < 2 || c.Size > convRows+1 {
		return fmt.Errorf("a convolution over %d positions has no kernel: want 2 to %d", c.Size, convRows+1)
	}
	shader, err := k.kernel(shaders.Conv, shaders.ConvConstants{Kept: uint32(c.Size - 1)}.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.ConvPush{X: c.X, Y: c.Y, Weights: c.Weights, Bias: c.Bias, States: of.States,
		Spans: of.Spans, Tables: of.Tables, Channels: uint32(c.Channels), XStride: uint32(c.XStride),
		YStride: uint32(c.YStride)})
	r.Dispatch(uint32((c.Channels+63)/64), uint32(of.N), uint32((c.Rows+convRows-1)/convRows))
	return nil
}

// Scan records a kernel.Scan.
func (k *Kernels) Scan(r *vk.Recording, s *kernel.Scan) error {
	a, of := s.Args, &s.Of
	c := shaders.ScanConstants{Keys: uint32(a.KDim), Values: uint32(a.VDim), Groups: uint32(a.Groups),
		Tiled: bit(a.Tiled), Delta: bit(s.Delta)}
	shader, err := k.kernel(shaders.Scan, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.ScanPush{Q: s.In[0].At, K: s.In[1].At, V: s.In[2].At, Step: s.In[3].At, Beta: s.In[4].At,
		Y: s.Y.At, Decay: s.Decay, Shift: s.Shift, Skip: s.Skip, States: of.States, Spans: of.Spans, Tables: of.Tables,
		QStride: uint32(s.In[0].Stride), KStride: uint32(s.In[1].Stride), VStride: uint32(s.In[2].Stride),
		StepStride: uint32(s.In[3].Stride), BetaStride: uint32(s.In[4].Stride), YStride: uint32(s.Y.Stride),
		Scale: a.Scale})
	r.Dispatch(uint32((a.VDim+7)/8), uint32(a.Heads), uint32(of.N))
	return nil
}
