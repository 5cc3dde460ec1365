//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Fits implements kernel.Table. A norm needs most shared memory: the kernel Norm does it apart.
func (k *Kernels) Fits(m *kernel.MatVec) bool {
	n := k.threads(m)
	return n > 0 && sharedBy(m, n) <= k.d.Facts.Shared
}

// threads is 32 for each segment of a row, within the device's limits. The bits do not depend on it.
func (k *Kernels) threads(m *kernel.MatVec) uint32 {
	summed := uint32(m.Summed())
	slots := min(uint32((m.W.KTiles()+m.W.Segment-1)/m.W.Segment), k.d.Facts.Invocations/32/summed)
	for slots > 1 && sharedBy(m, 32*slots*summed) > k.d.Facts.Shared {
		slots--
	}
	return 32 * slots * summed
}

// sharedBy is the bytes of shared memory that matvec.comp takes with a number of threads.
func sharedBy(m *kernel.MatVec, threads uint32) uint32 {
	n := threads*uint32(m.RowTilesAtOnce())*uint32(m.ColumnsAtOnce())*4 + 64
	if m.Gain != 0 {
		n += prologue(m)
	}
	return n
}

// prologue is the bytes that activations, and the sums of their blocks, take in shared memory.
func prologue(m *kernel.MatVec) uint32 {
	columns, k := uint32(m.ColumnsAtOnce()*m.Summed()), uint32(m.W.KTiles()*kernel.TileCols)
	if m.W.Float {
		return columns * (k*4 + k/8)
	}
	return columns * (k*5/4 + k/8)
}

func (k *Kernels) checkMatVec(m *kernel.MatVec) error {
	if err := m.Check(); err != nil {
		return err
	}
	if !k.Fits(m) {
		return fmt.Errorf("%d bytes of shared memory are needed, the device has %d",
			sharedBy(m, k.threads(m)), k.d.Facts.Shared)
	}
	return nil
}

// MatVec records a mat-vec. A barrier before it makes its inputs visible.
func (k *Kernels) MatVec(r *vk.Recording, m *kernel.MatVec) error {
	if err := k.checkMatVec(m); err != nil {
		return fmt.Errorf("%s %d×%d: %w", m.W.Type, m.W.Rows, m.W.Cols, err)
	}
	if m.Experts != nil && m.Experts.Grouped > kernel.MaxColumns {
		if _, wide := k.mulOf(m); wide == 0 {
			return fmt.Errorf("%s: experts take at most %d columns here", m.W.Type, kernel.MaxColumns)
		}
	}
	if module, wide := k.halfMul(m); wide > 0 {
		return k.matMulHalves(r, m, module, wide)
	}
	if mul, wide := k.mulOf(m); wide > 0 {
		return k.matMul(r, m, mul, wide)
	}
	if module, ok := k.floatMul(m); ok {
		return k.matMulFloat(r, m, module)
	}
	f := formats[m.W.Type]
	module := f.dot
	if k.Plain {
		module = f.plain
	}
	c := shaders.MatvecConstants{Threads: k.threads(m), Ktiles: uint32(m.W.KTiles()), Segment: uint32(m.W.Segment),
		Columns: uint32(m.ColumnsAtOnce()), Tiles: uint32(m.RowTilesAtOnce()), Epilogue: uint32(m.Glue), Act: uint32(max(m.Act,
			ir.SiLU))}
	if m.Gain != 0 {
		c.Prologue = 1
	} else if m.Columns == 1 && sharedBy(m, c.Threads)+prologue(m) <= k.d.Facts.Shared {
		c.Prologue = 2
	}
	c.Extras = uint32(m.Extras())
	p := shaders.MatvecPush{Weights: m.W.Address, X: m.X, Y: m.Y, Gain: m.Gain, Bias: m.Bias, UpBias: m.UpBias,
		Residual: m.Residual, Count: m.Count, Rows: uint32(m.W.Rows), Width: uint32(m.W.Cols),
		XStride: uint32(m.XStride), YStride: uint32(m.YStride), Eps: m.Eps, Columns: uint32(m.Columns)}
	columnGroups := (m.Columns + kernel.MaxColumns - 1) / kernel.MaxColumns
	c.Summed = uint32(m.Summed())
	if e := m.Experts; e != nil {
		c.Groups, columnGroups = uint32(e.Grouping()), e.Entries
		p.Chosen, p.Share, p.Shares = e.List, uint32(e.Share), e.Shares
	} else if columnGroups > 1 {
		c.Groups = 1
	}
	shader, err := k.kernel(module, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &p)
	groups := (m.W.RowTiles() + int(c.Tiles) - 1) / int(c.Tiles)
	if m.Groups > 0 {
		groups = min(groups, m.Groups)
	}
	r.Dispatch(uint32(groups), uint32(columnGroups), 1)
	return nil
}

// Pack records a kernel.Pack.
func (k *Kernels) Pack(r *vk.Recording, x *kernel.Pack) error {
	m := x.W
	rowBytes, err := tile.UploadBytes(m.Type, m.Cols)
	if err != nil {
		return err
	}
	first, step, err := tile.Place(x)
	if err != nil {
		return err
	}
	pack, err := k.kernel(formats[m.Type].pack, nil)
	if err != nil {
		return err
	}
	p := &shaders.RepackPush{File: x.File, Tiles: m.Address, Rows: uint32(x.Rows), RowBytes: uint32(rowBytes),
		First: uint32(first), Step: uint32(step)}
	vk.Use(r, pack, p)
	r.Dispatch(uint32(m.KTiles()), uint32((x.Rows+kernel.TileRows-1)/kernel.TileRows), 1)
	return nil
}

// Embed records a kernel.Embed.
func (k *Kernels) Embed(r *vk.Recording, e *kernel.Embed) error {
	lookup, err := k.kernel(formats[e.W.Type].lookup, nil)
	if err != nil {
		return err
	}
	vk.Use(r, lookup, &shaders.EmbedPush{Weights: e.W.Address, Ids: e.IDs, Drawn: e.Drawn, Y: e.Y,
		Width: uint32(e.W.Cols), YStride: uint32(e.YStride), Tiles: uint32(e.W.KTiles())})
	r.Dispatch(uint32((e.W.Cols+255)/256), uint32(e.Rows), 1)
	return nil
}

// Norm records a kernel.Norm.
func (k *Kernels) Norm(r *vk.Recording, n *kernel.Norm) error {
	c := shaders.NormConstants{Threads: min(512, k.d.Facts.Invocations), Ktiles: uint32(kernel.Tiles(n.Width))}
	if n.Gain != 0 {
		c.Norm = 1
	}
	if n.Quantise {
		c.Quantise = 1
	}
	shader, err := k.kernel(shaders.Norm, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.NormPush{X: n.X, Y: n.Y, Gain: n.Gain, Width: uint32(n.Width),
		XStride: uint32(n.XStride), YStride: uint32(n.Stride), Eps: n.Eps})
	r.Dispatch(uint32(n.Rows), 1, 1)
	return nil
}

// ArgMax records a kernel.ArgMax: RowParts workgroups search a row each in part, another one joins their results.
func (k *Kernels) ArgMax(r *vk.Recording, a *kernel.ArgMax) error {
	first, err := k.kernel(shaders.Argmax, shaders.ArgmaxConstants{}.List())
	if err != nil {
		return err
	}
	join, err := k.kernel(shaders.Argmax, shaders.ArgmaxConstants{Join: 1}.List())
	if err != nil {
		return err
	}
	vk.Use(r, first, &shaders.ArgmaxPush{X: a.X, Y: a.Scratch, Width: uint32(a.Width), XStride: uint32(a.Stride)})
	r.Dispatch(kernel.RowParts, uint32(a.Rows), 1)
	r.Barrier()
	vk.Use(r, join, &shaders.ArgmaxPush{X: a.Scratch, Y: a.IDs, Copy: a.Second, Width: kernel.RowParts,
		XStride: kernel.RowParts})
	r.Dispatch(1, uint32(a.Rows), 1)
	return nil
}
