//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

const (
	readGroups = 2048 // workgroups of 256 threads
	peakGroups = 1024 // of 128; kernel.PeakBytes has a float32 for each
)

// Read records a kernel.Read.
func (k *Kernels) Read(r *vk.Recording, x *kernel.Read) error {
	shader, err := k.kernel(shaders.Read, nil)
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.ReadPush{X: x.X, Never: x.Never, Quads: uint32(x.Quads)})
	r.Dispatch(uint32(min(x.Quads/kernel.ReadQuads, readGroups)), 1, 1)
	return nil
}

// Peak records a kernel.Peak.
func (k *Kernels) Peak(r *vk.Recording, p *kernel.Peak) error {
	m, _ := k.peak(p.Halves)
	shader, err := k.kernel(m, nil)
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.PeakPush{Y: p.Y, Seed: 1, Rounds: p.Rounds})
	r.Dispatch(peakGroups, 1, 1)
	return nil
}

// PeakOps implements driver.Kernels.
func (k *Kernels) PeakOps(halves bool) float64 {
	_, ops := k.peak(halves)
	return ops
}

// peak is the kernel for kernel.Peak, and the operations that all of its workgroups do in a round.
func (k *Kernels) peak(halves bool) (shaders.Module, float64) {
	const sums, threads, teams = 8, 128, 4 // each of a workgroup
	switch {
	case k.CoopMat && k.squares && halves:
		return shaders.PeakHalfMatrix, peakGroups * teams * sums * 2 * 16 * 16 * 16
	case k.CoopMat && !halves:
		return shaders.PeakMatrix, peakGroups * teams * sums * 2 * 16 * 16 * 32
	case !k.Plain && !halves:
		return shaders.PeakDot4, peakGroups * threads * sums * 2 * 4
	}
	return shaders.Peak, peakGroups * threads * sums * 2
}
