//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// Finite records a kernel.Finite.
func (k *Kernels) Finite(r *vk.Recording, f *kernel.Finite) error {
	shader, err := k.kernel(shaders.Finite, nil)
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.FinitePush{X: f.X, Status: f.Status, Count: f.Count, Width: uint32(f.Width),
		XStride: uint32(f.Stride)})
	r.Dispatch(uint32((f.Width+255)/256), uint32(f.Rows), 1)
	return nil
}
