//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// HeadCopy records a kernel.HeadCopy.
func (k *Kernels) HeadCopy(r *vk.Recording, c *kernel.HeadCopy) error {
	shader, err := k.kernel(shaders.HeadCopy, nil)
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.HeadCopyPush{X: c.X, Y: c.Y, Count: c.Count, Heads: uint32(c.Heads),
		Width: uint32(c.Width), XHead: uint32(c.XHead), YHead: uint32(c.YHead), XStride: uint32(c.XStride),
		YStride: uint32(c.YStride)})
	r.Dispatch(uint32((c.Heads*c.Width+63)/64), uint32(c.N), 1)
	return nil
}

// HeadLinear records a kernel.HeadLinear. A row's bits do not depend on other rows.
func (k *Kernels) HeadLinear(r *vk.Recording, h *kernel.HeadLinear) error {
	c := shaders.HeadLinearConstants{Threads: uint32(32 * min(8, (h.W.Cols+31)/32)),
		Columns: uint32(min(h.Rows, kernel.MaxColumns))}
	shader, err := k.kernel(formats[h.W.Type].heads, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.HeadLinearPush{Weights: h.W.Address, X: h.X, Y: h.Y, Count: h.Count,
		Rows: uint32(h.W.Rows), Each: uint32(h.W.Rows / h.Heads), Width: uint32(h.W.Cols), Tiles: uint32(h.W.KTiles()),
		XStride: uint32(h.XStride), YStride: uint32(h.YStride)})
	r.Dispatch(uint32(h.W.RowTiles()), uint32((h.Rows+kernel.MaxColumns-1)/kernel.MaxColumns), 1)
	return nil
}
