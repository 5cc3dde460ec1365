//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Each records a kernel.Each.
func (k *Kernels) Each(r *vk.Recording, e *kernel.Each) error {
	if e.Formula > kernel.Gate || e.Formula >= kernel.Activate && (e.Act == 0 || e.Act > ir.Clamped) ||
		e.Formula == kernel.Activate && e.Act == ir.Clamped {
		return fmt.Errorf("formula %d of activation %d is none", e.Formula, e.Act)
	}
	c := shaders.EachConstants{Op: uint32(e.Formula), Act: uint32(e.Act)}
	shader, err := k.kernel(shaders.Each, c.List())
	if err != nil {
		return err
	}
	p := &shaders.EachPush{A: e.A, B: e.B, Y: e.Y, Numbers: e.Numbers, Count: e.Count, Width: uint32(e.Width),
		Filled: uint32(max(e.Width, e.Filled)), BWidth: uint32(e.BWidth), AStride: uint32(e.AStride),
		BStride: uint32(e.BStride), YStride: uint32(e.YStride), Factor: e.Factor,
		Share: uint32(max(1, e.Share))}
	if e.BWidth == 0 {
		p.BWidth = p.Width
	}
	vk.Use(r, shader, p)
	r.Dispatch((p.Filled+255)/256, uint32(e.Rows), 1)
	return nil
}

// GroupNorm records a kernel.GroupNorm.
func (k *Kernels) GroupNorm(r *vk.Recording, n *kernel.GroupNorm) error {
	if n.Group < 1 || n.Width%n.Group != 0 {
		return fmt.Errorf("a norm of %d features by groups of %d", n.Width, n.Group)
	}
	c := shaders.GroupNormConstants{Threads: 64}
	if n.Group >= 1024 && k.d.Facts.Invocations >= 256 {
		c.Threads = 256
	}
	if n.Layer {
		c.Layer = 1
	}
	shader, err := k.kernel(shaders.GroupNorm, c.List())
	if err != nil {
		return err
	}
	p := &shaders.GroupNormPush{X: n.X, Y: n.Y, Gain: n.Gain, Bias: n.Bias, Count: n.Count, Group: uint32(n.Group),
		XStride: uint32(n.XStride), YStride: uint32(n.YStride), Eps: n.Eps}
	if n.GainByRow {
		p.GainGroups = 1
	}
	if n.BiasByRow {
		p.BiasGroups = 1
	}
	vk.Use(r, shader, p)
	r.Dispatch(uint32(n.Width/n.Group), uint32(n.Rows), 1)
	return nil
}

// Turn records a kernel.Turn.
func (k *Kernels) Turn(r *vk.Recording, t *kernel.Turn) error {
	if t.Dims > t.Features || t.Dims%2 != 0 {
		return fmt.Errorf("%d of %d features rotate", t.Dims, t.Features)
	}
	shader, err := k.kernel(shaders.Turn, nil)
	if err != nil {
		return err
	}
	p := &shaders.TurnPush{X: t.X, Y: t.Y, Angles: t.Angles, Count: t.Count, Heads: uint32(t.Heads),
		Features: uint32(t.Features), Dims: uint32(t.Dims), XStride: uint32(t.XStride), YStride: uint32(t.YStride)}
	if t.Interleaved {
		p.Interleaved = 1
	}
	vk.Use(r, shader, p)
	r.Dispatch(uint32((t.Heads*(t.Features-t.Dims/2)+63)/64), uint32(t.Rows), 1)
	return nil
}

// Around records a kernel.Around. Y is not X.
func (k *Kernels) Around(r *vk.Recording, a *kernel.Around) error {
	if a.Size < 1 || a.Size%2 == 0 {
		return fmt.Errorf("%d × %d rows have none in their middle", a.Size, a.Size)
	}
	shader, err := k.kernel(shaders.Around, nil)
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.AroundPush{X: a.X, Y: a.Y, Texts: a.Texts, Count: a.Count, Width: uint32(a.Width),
		Size: uint32(a.Size), XStride: uint32(a.XStride), YStride: uint32(a.YStride)})
	r.Dispatch(uint32((a.Size*a.Size*a.Width+63)/64), uint32(a.Rows), 1)
	return nil
}

// Adapt records a kernel.Adapt.
func (k *Kernels) Adapt(r *vk.Recording, a *kernel.Adapt) error {
	shader, err := k.kernel(shaders.Adapt, nil)
	if err != nil {
		return err
	}
	p := &shaders.AdaptPush{X: a.X.At, A: a.A.At, Y: a.Y.At, Between: a.Between, First: a.Lists, Applied: a.Applied,
		Numbers: a.Numbers, Ids: a.IDs, Drawn: a.Drawn, Count: a.Count, Features: uint32(a.In), Width: uint32(a.Out),
		Site: uint32(a.Site), Parts: uint32(a.Parts()), XStride: uint32(a.X.Stride), AStride: uint32(a.A.Stride),
		YStride: uint32(a.Y.Stride)}
	groups := p.Parts
	if a.Up {
		p.Up, groups = 1, (p.Width+255)/256
	}
	vk.Use(r, shader, p)
	r.Dispatch(groups, uint32(a.Rows), 1)
	return nil
}
