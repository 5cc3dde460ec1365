//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Choice says which experts a MatVec takes, and for which rows. A pair is a row with one of its experts: pair p is of
// row p/used, and its results are row p of y.
type Choice struct {
	List    uint64 // Route's ids, or Group's entries
	Entries int    // of the list: pairs, or GroupEntries, or rows where they are summed
	Grouped int    // the list is Group's, of entries of so many pairs: a MatVec takes as many columns; 0: it takes one
	Share   int    // pairs with the same row of x: the experts of a row before gate and up, 1 before down
	// Shares is Route's weights. Then y[row] is what Combine makes of the row's pairs, Share of them, and the residual.
	Shares uint64
}

func (c *Choice) columns() int {
	return max(1, c.Grouped)
}

// groups is what matvec.comp calls it.
func (c *Choice) groups() uint32 {
	switch {
	case c.Shares != 0:
		return 4
	case c.Grouped > 0:
		return 3
	}
	return 2
}

// Route is the choice of experts for rows, as internal/ir has it.
type Route struct {
	Args         *ir.RouteArgs
	Experts      int
	Logits, Bias uint64 // Bias 0: none
	Factors      uint64 // by expert, of weights; 0: none
	XStride      int    // of logits, in float32
	IDs          uint64 // of uint32 [row][used], ascending
	Weights      uint64 // [row][used]
	Dense        uint64 // [row][experts], with 0 for all that are not chosen; 0: not wanted
	DenseStride  int
	Rows         int
	Count        uint64 // of a uint32: rows that are there; 0: all
}

// Route records it.
func (k *Kernels) Route(r *vk.Recording, t *Route) error {
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
	kernel, err := k.kernel(shaders.Route, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.RoutePush{Logits: t.Logits, Bias: t.Bias, Ids: t.IDs, Weights: t.Weights, Dense: t.Dense,
		Factors: t.Factors, Count: t.Count, XStride: uint32(t.XStride), DenseStride: uint32(t.DenseStride), Scale: a.Scale})
	r.Dispatch(uint32(t.Rows), 1, 1)
	return nil
}

// Chosen records the list that Route makes, of a choice that was made elsewhere: from the weights of all experts at
// t.Dense, 0 for those that are not chosen.
func (k *Kernels) Chosen(r *vk.Recording, t *Route, used int) error {
	kernel, err := k.kernel(shaders.Chosen, shaders.ChosenConstants{Used: uint32(used)}.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.ChosenPush{Dense: t.Dense, Ids: t.IDs, Weights: t.Weights, Count: t.Count,
		Rows: uint32(t.Rows), Experts: uint32(t.Experts), Stride: uint32(t.DenseStride)})
	r.Dispatch(uint32((t.Rows+63)/64), 1, 1)
	return nil
}

// GroupedColumns is the entries' size by which many rows are gathered, where mat-mat kernels take them.
const GroupedColumns = 32

// Gathers is the size of the entries that a matrix is multiplied by fastest: MaxColumns or GroupedColumns.
func (k *Kernels) Gathers(w *Matrix, biased bool) int {
	v := MatVec{W: w, Columns: GroupedColumns, Experts: &Choice{Grouped: GroupedColumns}}
	if biased {
		v.Bias = 1
	}
	if w.Pair {
		v.Glue = SwiGLUToInt8
	}
	if _, wide := k.mulOf(&v); wide == 0 {
		return MaxColumns
	}
	return GroupedColumns
}

// GroupEntries is the most entries of a list of so many pairs.
func GroupEntries(experts, pairs, size int) int { return min(pairs, experts) + pairs/size }

// GroupBytes is the memory of a list of so many pairs.
func GroupBytes(experts, pairs, size int) uint64 {
	return uint64(GroupEntries(experts, pairs, size)) * 4 * uint64(size+1)
}

// Group records the gathering of the pairs of each expert, so that weights are read once for so many rows.
func (k *Kernels) Group(r *vk.Recording, ids, entries uint64, experts, pairs, size int) error {
	kernel, err := k.kernel(shaders.Group, shaders.GroupConstants{Experts: uint32(experts), Size: uint32(size)}.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.GroupPush{Ids: ids, Entries: entries, Pairs: uint32(pairs),
		Most: uint32(GroupEntries(experts, pairs, size))})
	r.Dispatch(1, 1, 1)
	return nil
}

// Combine is y[row] = Σ weight·x[pair] over a row's experts in ascending order, and the residual.
type Combine struct {
	X, Weights, Residual, Y uint64 // Weights 0: ones; Residual 0: none; it may be Y
	XStride, YStride        int    // in float32; YStride of Residual, too
	Width, Used, Rows       int
	Count                   uint64 // of a uint32: rows that are there; 0: all
}

// Combine records it.
func (k *Kernels) Combine(r *vk.Recording, c *Combine) error {
	kernel, err := k.kernel(shaders.Combine, shaders.CombineConstants{Used: uint32(c.Used)}.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.CombinePush{X: c.X, Weights: c.Weights, Residual: c.Residual, Y: c.Y, Count: c.Count,
		Width: uint32(c.Width), XStride: uint32(c.XStride), YStride: uint32(c.YStride)})
	r.Dispatch(uint32((c.Width+255)/256), uint32(c.Rows), 1)
	return nil
}
