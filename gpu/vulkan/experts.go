//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Route records a kernel.Route.
func (k *Kernels) Route(r *vk.Recording, t *kernel.Route) error {
	a := t.Args
	if a.Used < 1 || a.Used > t.Experts || uint32(8*(t.Experts+a.Used+a.Groups)+1280) > k.d.Facts.Shared {
		return fmt.Errorf("%d of %d experts have no kernel", a.Used, t.Experts)
	}
	threads := uint32(64)
	for threads < min(256, uint32(t.Experts), k.d.Facts.Invocations) {
		threads *= 2
	}
	c := shaders.RouteConstants{Threads: threads, Experts: uint32(t.Experts), Used: uint32(a.Used),
		Scoring: uint32(a.Scoring), Teams: uint32(a.Groups), Teamsused: uint32(a.GroupsUsed),
		Teambest: uint32(a.GroupBest)}
	if a.Normalise {
		c.Normalise = 1
	}
	shader, err := k.kernel(shaders.Route, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.RoutePush{Logits: t.Logits, Bias: t.Bias, Ids: t.IDs, Weights: t.Weights, Dense: t.Dense,
		Factors: t.Factors, Count: t.Count, XStride: uint32(t.XStride), DenseStride: uint32(t.DenseStride), Scale: a.Scale})
	r.Dispatch(uint32(t.Rows), 1, 1)
	return nil
}

// Chosen records a kernel.Chosen.
func (k *Kernels) Chosen(r *vk.Recording, t *kernel.Chosen) error {
	shader, err := k.kernel(shaders.Chosen, shaders.ChosenConstants{Used: uint32(t.Used)}.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.ChosenPush{Dense: t.Dense, Ids: t.IDs, Weights: t.Weights, Count: t.Count,
		Rows: uint32(t.Rows), Experts: uint32(t.Experts), Stride: uint32(t.DenseStride)})
	r.Dispatch(uint32((t.Rows+63)/64), 1, 1)
	return nil
}

// Plays implements kernel.Table: a GPU has no reference loops.
func (k *Kernels) Plays(ir.Op) bool { return false }

// AttentionRows implements kernel.Table.
func (k *Kernels) AttentionRows() int { return kernel.AttentionRows }

// Gathers implements kernel.Table: GroupedColumns if a mat-mat kernel takes the matrix, else MaxColumns.
func (k *Kernels) Gathers(w *kernel.Matrix, biased bool) int {
	v := kernel.MatVec{W: w, Columns: kernel.GroupedColumns, Experts: &kernel.Choice{Grouped: kernel.GroupedColumns}}
	if biased {
		v.Bias = 1
	}
	if w.Pair {
		v.Glue = kernel.SwiGLUToInt8
	}
	if _, wide := k.mulOf(&v); wide == 0 {
		return kernel.MaxColumns
	}
	return kernel.GroupedColumns
}

// Group records a kernel.Group.
func (k *Kernels) Group(r *vk.Recording, g *kernel.Group) error {
	c := shaders.GroupConstants{Experts: uint32(g.Experts), Size: uint32(g.Size)}
	shader, err := k.kernel(shaders.Group, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.GroupPush{Ids: g.IDs, Entries: g.Entries, Pairs: uint32(g.Pairs),
		Most: uint32(kernel.GroupEntries(g.Experts, g.Pairs, g.Size))})
	r.Dispatch(1, 1, 1)
	return nil
}

// Combine records a kernel.Combine.
func (k *Kernels) Combine(r *vk.Recording, c *kernel.Combine) error {
	shader, err := k.kernel(shaders.Combine, shaders.CombineConstants{Used: uint32(c.Used)}.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.CombinePush{X: c.X, Weights: c.Weights, Residual: c.Residual, Y: c.Y, Count: c.Count,
		Width: uint32(c.Width), XStride: uint32(c.XStride), YStride: uint32(c.YStride)})
	r.Dispatch(uint32((c.Width+255)/256), uint32(c.Rows), 1)
	return nil
}
