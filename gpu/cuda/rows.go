//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// bit is a flag as kernels take it.
func bit(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// parts is how many blocks n need, if each takes so many of them.
func parts(n, each int) uint32 { return uint32((n + each - 1) / each) }

type normArgs struct {
	x, y, gain              uint64
	width, xStride, yStride uint32
	eps                     float32
	quantise, _             uint32
}

func (k *Kernels) norm(r *recording, n *kernel.Norm) error {
	padded := kernel.PaddedWidth(n.Width)
	threads := min(512, max(32, padded/4))
	return launch(k, r, "norm", "norm", [3]uint32{uint32(n.Rows), 1, 1}, threads, padded/8, &normArgs{x: n.X, y: n.Y,
		gain: n.Gain, width: uint32(n.Width), xStride: uint32(n.XStride), yStride: uint32(n.Stride), eps: n.Eps,
		quantise: bit(n.Quantise)})
}

// eachArgs is the arguments of each.cu.
// Wide: they are the arguments of a kernel.
type eachArgs struct {
	a, b, y, numbers, count   uint64
	op, act                   uint32
	width, filled, bWidth     uint32
	aStride, bStride, yStride uint32
	factor                    float32
	share                     uint32
}

func (k *Kernels) each(r *recording, e *kernel.Each) error {
	if e.Formula > kernel.Gate || e.Formula >= kernel.Activate && (e.Act == 0 || e.Act > ir.Clamped) ||
		e.Formula == kernel.Activate && e.Act == ir.Clamped {
		return fmt.Errorf("formula %d of activation %d is none", e.Formula, e.Act)
	}
	filled, bWidth := max(e.Width, e.Filled), e.BWidth
	if bWidth == 0 {
		bWidth = e.Width
	}
	grid := [3]uint32{parts(filled, 256), uint32(e.Rows), 1}
	return launch(k, r, "each", "each", grid, 256, 0, &eachArgs{a: e.A, b: e.B, y: e.Y, numbers: e.Numbers, count: e.Count,
		op: uint32(e.Formula), act: uint32(e.Act), width: uint32(e.Width), filled: uint32(filled), bWidth: uint32(bWidth),
		aStride: uint32(e.AStride), bStride: uint32(e.BStride), yStride: uint32(e.YStride), factor: e.Factor,
		share: uint32(max(1, e.Share))})
}

type groupNormArgs struct {
	x, y, gain, bias, count uint64
	layer, group            uint32
	gainGroups, biasGroups  uint32
	xStride, yStride        uint32
	eps                     float32
	_                       uint32
}

func (k *Kernels) groupNorm(r *recording, n *kernel.GroupNorm) error {
	if n.Group < 1 || n.Width%n.Group != 0 {
		return fmt.Errorf("a norm of %d features by groups of %d", n.Width, n.Group)
	}
	threads := 64
	if n.Group >= 1024 {
		threads = 256
	}
	grid := [3]uint32{uint32(n.Width / n.Group), uint32(n.Rows), 1}
	return launch(k, r, "group_norm", "groupNorm", grid, threads, 4*threads, &groupNormArgs{x: n.X, y: n.Y, gain: n.Gain,
		bias: n.Bias, count: n.Count, layer: bit(n.Layer), group: uint32(n.Group), gainGroups: bit(n.GainByRow),
		biasGroups: bit(n.BiasByRow), xStride: uint32(n.XStride), yStride: uint32(n.YStride), eps: n.Eps})
}

type turnArgs struct {
	x, y, angles, count                uint64
	heads, features, dims, interleaved uint32
	xStride, yStride                   uint32
}

func (k *Kernels) turn(r *recording, t *kernel.Turn) error {
	if t.Dims > t.Features || t.Dims%2 != 0 {
		return fmt.Errorf("%d of %d features rotate", t.Dims, t.Features)
	}
	grid := [3]uint32{parts(t.Heads*(t.Features-t.Dims/2), 64), uint32(t.Rows), 1}
	return launch(k, r, "turn", "turn", grid, 64, 0, &turnArgs{x: t.X, y: t.Y, angles: t.Angles, count: t.Count,
		heads: uint32(t.Heads), features: uint32(t.Features), dims: uint32(t.Dims), interleaved: bit(t.Interleaved),
		xStride: uint32(t.XStride), yStride: uint32(t.YStride)})
}

type finiteArgs struct {
	x, status, count uint64
	width, stride    uint32
}

func (k *Kernels) finite(r *recording, f *kernel.Finite) error {
	return launch(k, r, "finite", "finite", [3]uint32{parts(f.Width, 256), uint32(f.Rows), 1}, 64, 0,
		&finiteArgs{x: f.X, status: f.Status, count: f.Count, width: uint32(f.Width), stride: uint32(f.Stride)})
}

type aroundArgs struct {
	x, y, texts, count uint64
	width, size        uint32
	xStride, yStride   uint32
}

func (k *Kernels) around(r *recording, n *kernel.Around) error {
	if n.Size%2 == 0 {
		return fmt.Errorf("rows around a row, %d of them in each direction", n.Size)
	}
	grid := [3]uint32{parts(n.Size*n.Size*n.Width, 64), uint32(n.Rows), 1}
	return launch(k, r, "around", "around", grid, 64, 0, &aroundArgs{x: n.X, y: n.Y, texts: n.Texts, count: n.Count,
		width: uint32(n.Width), size: uint32(n.Size), xStride: uint32(n.XStride), yStride: uint32(n.YStride)})
}

// Wide: they are the arguments of a kernel.
type adaptArgs struct {
	x, a, y, between, first, applied uint64
	numbers, ids, drawn, count       uint64
	features, width, site, parts     uint32
	xStride, aStride, yStride, up    uint32
}

func (k *Kernels) adapt(r *recording, a *kernel.Adapt) error {
	groups := uint32(a.Parts())
	if a.Up {
		groups = parts(a.Out, 256)
	}
	return launch(k, r, "adapt", "adapt", [3]uint32{groups, uint32(a.Rows), 1}, 256, 0, &adaptArgs{x: a.X.At, a: a.A.At,
		y: a.Y.At, between: a.Between, first: a.Lists, applied: a.Applied, numbers: a.Numbers, ids: a.IDs, drawn: a.Drawn,
		count: a.Count, features: uint32(a.In), width: uint32(a.Out), site: uint32(a.Site), parts: uint32(a.Parts()),
		xStride: uint32(a.X.Stride), aStride: uint32(a.A.Stride), yStride: uint32(a.Y.Stride), up: bit(a.Up)})
}
