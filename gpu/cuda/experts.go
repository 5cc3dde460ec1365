//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
)

// routeArgs is the arguments of route.cu.
// Wide: they are the arguments of a kernel.
type routeArgs struct {
	logits, bias, ids, weights, dense, factors, count uint64
	xStride, denseStride                              uint32
	scale                                             float32
	experts, used, scoring                            uint32
	teams, teamsUsed, teamBest, normalise             uint32
}

func (k *Kernels) route(r *recording, t *kernel.Route) error {
	a, threads := t.Args, 64
	for threads < min(256, t.Experts) {
		threads *= 2
	}
	if a.Used < 1 || a.Used > t.Experts {
		return fmt.Errorf("%d of %d experts have no kernel", a.Used, t.Experts)
	}
	shared := 4 * (2*t.Experts + 2*a.Used + a.Groups + threads)
	return launch(k, r, "route", "route", [3]uint32{uint32(t.Rows), 1, 1}, threads, shared, &routeArgs{logits: t.Logits,
		bias: t.Bias, ids: t.IDs, weights: t.Weights, dense: t.Dense, factors: t.Factors, count: t.Count,
		xStride: uint32(t.XStride), denseStride: uint32(t.DenseStride), scale: a.Scale, experts: uint32(t.Experts),
		used: uint32(a.Used), scoring: uint32(a.Scoring), teams: uint32(a.Groups), teamsUsed: uint32(a.GroupsUsed),
		teamBest: uint32(a.GroupBest), normalise: bit(a.Normalise)})
}

type chosenArgs struct {
	dense, ids, weights, count  uint64
	rows, experts, used, stride uint32
}

func (k *Kernels) chosen(r *recording, t *kernel.Chosen) error {
	return launch(k, r, "chosen", "chosen", [3]uint32{parts(t.Rows, 64), 1, 1}, 64, 0, &chosenArgs{dense: t.Dense,
		ids: t.IDs, weights: t.Weights, count: t.Count, rows: uint32(t.Rows), experts: uint32(t.Experts),
		used: uint32(t.Used), stride: uint32(t.DenseStride)})
}

type groupArgs struct {
	ids, entries               uint64
	pairs, most, experts, size uint32
}

func (k *Kernels) group(r *recording, g *kernel.Group) error {
	return launch(k, r, "group", "group", [3]uint32{1, 1, 1}, 256, 8*g.Experts, &groupArgs{ids: g.IDs, entries: g.Entries,
		pairs: uint32(g.Pairs), most: uint32(kernel.GroupEntries(g.Experts, g.Pairs, g.Size)),
		experts: uint32(g.Experts), size: uint32(g.Size)})
}

type combineArgs struct {
	x, weights, residual, y, count uint64
	width, xStride, yStride, used  uint32
}

func (k *Kernels) combine(r *recording, c *kernel.Combine) error {
	grid := [3]uint32{parts(c.Width, 256), uint32(c.Rows), 1}
	return launch(k, r, "combine", "combine", grid, 256, 0, &combineArgs{x: c.X, weights: c.Weights, residual: c.Residual,
		y: c.Y, count: c.Count, width: uint32(c.Width), xStride: uint32(c.XStride), yStride: uint32(c.YStride),
		used: uint32(c.Used)})
}
