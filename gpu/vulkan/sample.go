//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// Sample records a kernel.Sample: RowParts workgroups find a part's likeliest tokens each, another one draws among
// them.
func (k *Kernels) Sample(r *vk.Recording, s *kernel.Sample) error {
	for join := range uint32(2) {
		c := shaders.SampleConstants{Join: join, Most: kernel.MaxTopK}
		shader, err := k.kernel(shaders.Sample, c.List())
		if err != nil {
			return err
		}
		vk.Use(r, shader, &shaders.SamplePush{Logits: s.Logits, Scratch: s.Scratch, Draws: s.Draws, Ids: s.IDs,
			Second: s.Second, Width: uint32(s.Width), Stride: uint32(s.Stride), Parts: kernel.RowParts})
		if join == 0 {
			r.Dispatch(kernel.RowParts, uint32(s.Rows), 1)
			r.Barrier()
		} else {
			r.Dispatch(1, uint32(s.Rows), 1)
		}
	}
	return nil
}
