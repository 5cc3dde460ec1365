//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// Finite records a look at rows of float32: status becomes at least 1 + the number of a row that has NaN or infinity.
// count is the address of how many of n rows are there.
func (k *Kernels) Finite(r *vk.Recording, x, status, count uint64, width, stride, n int) error {
	kernel, err := k.kernel(shaders.Finite, nil)
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.FinitePush{X: x, Status: status, Count: count, Width: uint32(width),
		XStride: uint32(stride)})
	r.Dispatch(uint32((width+255)/256), uint32(n), 1)
	return nil
}
