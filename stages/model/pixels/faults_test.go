package pixels

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
)

// edited gives the tensor of a name another shape, or takes it away.
func edited(all []ir.Tensor, name string, shape ...int) []ir.Tensor {
	i := slices.IndexFunc(all, func(t ir.Tensor) bool { return t.Name == name })
	if all[i].Shape = shape; len(shape) == 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}

// misshapen gives some tensors shapes that a file may have made up, of these sizes and impossible ones.
func misshapen(t *rapid.T, all []ir.Tensor, sizes ...int) []ir.Tensor {
	sizes = append([]int{-1, 0, 1, 1 << 20, 1 << 40}, sizes...)
	for range rapid.IntRange(1, 3).Draw(t, "faults") {
		x := &all[rapid.IntRange(0, len(all)-1).Draw(t, "tensor")]
		x.Shape = rapid.SliceOfN(rapid.SampledFrom(sizes), 0, 5).Draw(t, "shape")
	}
	return all
}
