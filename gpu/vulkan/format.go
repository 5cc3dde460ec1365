//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/internal/quant"
)

// format is the kernels for a type of weights.
type format struct {
	dot, plain   shaders.Module // mat-vec with the device's dot products, and without
	pack, lookup shaders.Module
	heads        shaders.Module // for kernel.HeadLinear
	float        bool           // activations are float32, not quantised
	split        int            // bytes of a row of a tile as Recode writes it; 0: rows are packed as the file has them
}

var formats = allFormats()

// modules are the kernels of each layout.
var modules = [tile.Layouts]format{
	tile.Q4_0: {dot: shaders.MatvecQ4_0, plain: shaders.MatvecQ4_0Plain, pack: shaders.RepackQ4_0,
		lookup: shaders.EmbedQ4_0, heads: shaders.HeadLinearQ4_0},
	tile.Q8_0: {dot: shaders.MatvecQ8_0, plain: shaders.MatvecQ8_0Plain, pack: shaders.RepackQ8_0,
		lookup: shaders.EmbedQ8_0, heads: shaders.HeadLinearQ8_0},
	tile.Q4_K: {dot: shaders.MatvecQ4_K, plain: shaders.MatvecQ4_KPlain, pack: shaders.RepackQ4_K,
		lookup: shaders.EmbedQ4_K, heads: shaders.HeadLinearQ4_K},
	tile.Q6_K: {dot: shaders.MatvecQ6_K, plain: shaders.MatvecQ6_KPlain, pack: shaders.RepackQ6_K,
		lookup: shaders.EmbedQ6_K, heads: shaders.HeadLinearQ6_K},
	tile.F16: {dot: shaders.MatvecF16, plain: shaders.MatvecF16, pack: shaders.RepackF16, lookup: shaders.EmbedF16,
		heads: shaders.HeadLinearF16},
	tile.BF16: {dot: shaders.MatvecBf16, plain: shaders.MatvecBf16, pack: shaders.RepackF16, lookup: shaders.EmbedBf16,
		heads: shaders.HeadLinearBf16},
	tile.F32: {dot: shaders.MatvecF32, plain: shaders.MatvecF32, pack: shaders.RepackF32, lookup: shaders.EmbedF32,
		heads: shaders.HeadLinearF32},
	tile.Split: {dot: shaders.MatvecSplit, plain: shaders.MatvecSplitPlain, pack: shaders.RepackSplit,
		lookup: shaders.EmbedSplit, heads: shaders.HeadLinearSplit},
	tile.SplitLow: {dot: shaders.MatvecSplitLow, plain: shaders.MatvecSplitLowPlain, pack: shaders.RepackSplitLow,
		lookup: shaders.EmbedSplitLow, heads: shaders.HeadLinearSplitLow},
}

func allFormats() map[quant.Type]format {
	all := map[quant.Type]format{}
	for _, t := range quant.All() {
		if l := tile.Of(t); l != tile.None {
			f := modules[l]
			f.float, f.split = l.Float(), l.Recoded()
			all[t] = f
		}
	}
	return all
}

// Supported says whether there are kernels for a type of weights.
func Supported(t quant.Type) bool { return tile.Of(t) != tile.None }

// NewMatrix describes a matrix.
func NewMatrix(t quant.Type, rows, cols int, pair bool) (kernel.Matrix, error) {
	if !Supported(t) {
		return kernel.Matrix{}, fmt.Errorf("%s has no kernels on Vulkan", t)
	}
	return tile.Matrix(t, rows, cols, pair)
}

// Matrix implements kernel.Table.
func (k *Kernels) Matrix(t quant.Type, rows, cols int, pair bool) (kernel.Matrix, error) {
	return NewMatrix(t, rows, cols, pair)
}

// Integers implements kernel.Table.
func (k *Kernels) Integers(t quant.Type) bool { return !tile.Of(t).Float() }

// UploadBytes implements driver.Kernels.
func (k *Kernels) UploadBytes(t quant.Type, cols int) (int, error) { return tile.UploadBytes(t, cols) }

// Recodes implements driver.Kernels.
func (k *Kernels) Recodes(t quant.Type) bool { return tile.Of(t).Recoded() > 0 }

// Recode implements driver.Kernels.
func (k *Kernels) Recode(t quant.Type, cols int, to, file []byte) error {
	return tile.Recode(t, cols, to, file)
}
