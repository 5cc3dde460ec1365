//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// Launch implements driver.Kernels.
func (k *Kernels) Launch(to driver.Recording, l kernel.Launch) error {
	r := to.(*recording).Recording
	switch l := l.(type) {
	case *kernel.Embed:
		return k.Embed(r, l)
	case *kernel.Norm:
		return k.Norm(r, l)
	case *kernel.MatVec:
		return k.MatVec(r, l)
	case *kernel.Each:
		return k.Each(r, l)
	case *kernel.GroupNorm:
		return k.GroupNorm(r, l)
	case *kernel.Turn:
		return k.Turn(r, l)
	case *kernel.Rotate:
		return k.Rotate(r, &l.Heads, &l.Attention)
	case *kernel.Append:
		return k.Append(r, l)
	case *kernel.Attend:
		return k.Attend(r, &l.Heads, &l.Attention)
	case *kernel.ArgMax:
		return k.ArgMax(r, l)
	case *kernel.Sample:
		return k.Sample(r, l)
	case *kernel.Pack:
		return k.Pack(r, l)
	}
	return k.launchRest(r, l)
}

// launchRest is Launch for kernels that few models have, and for those of measurements.
func (k *Kernels) launchRest(r *vk.Recording, l kernel.Launch) error {
	switch l := l.(type) {
	case *kernel.Seal:
		return k.Seal(r, l)
	case *kernel.Route:
		return k.Route(r, l)
	case *kernel.Chosen:
		return k.Chosen(r, l)
	case *kernel.Group:
		return k.Group(r, l)
	case *kernel.Combine:
		return k.Combine(r, l)
	case *kernel.Conv:
		return k.Conv(r, l)
	case *kernel.Scan:
		return k.Scan(r, l)
	case *kernel.HeadCopy:
		return k.HeadCopy(r, l)
	case *kernel.Around:
		return k.Around(r, l)
	case *kernel.Adapt:
		return k.Adapt(r, l)
	case *kernel.HeadLinear:
		return k.HeadLinear(r, l)
	case *kernel.Finite:
		return k.Finite(r, l)
	case *kernel.Read:
		return k.Read(r, l)
	case *kernel.Peak:
		return k.Peak(r, l)
	}
	return fmt.Errorf("%T has no kernel on Vulkan", l)
}
