//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Matrix implements kernel.Table.
func (k *Kernels) Matrix(t quant.Type, rows, cols int, pair bool) (kernel.Matrix, error) {
	return tile.Matrix(t, rows, cols, pair)
}

// Integers implements kernel.Table.
func (k *Kernels) Integers(t quant.Type) bool { return !tile.Of(t).Float() }

// Fits implements kernel.Table.
func (k *Kernels) Fits(m *kernel.MatVec) bool {
	_, ok := shapeOf(m, k.c.Facts.Shared)
	return ok
}

// manyRows is how many rows attend at once where much memory is no question: more blocks fill a card better.
const (
	manyRows   = 512
	muchMemory = 24 << 30
)

// AttentionRows implements kernel.Table.
func (k *Kernels) AttentionRows() int {
	if k.c.Facts.Memory < muchMemory {
		return kernel.AttentionRows
	}
	return manyRows
}

// Plays implements kernel.Table: a GPU has no reference loops.
func (k *Kernels) Plays(ir.Op) bool { return false }

// UploadBytes implements driver.Kernels.
func (k *Kernels) UploadBytes(t quant.Type, cols int) (int, error) { return tile.UploadBytes(t, cols) }

// Recodes implements driver.Kernels.
func (k *Kernels) Recodes(t quant.Type) bool { return tile.Of(t).Recoded() > 0 }

// Recode implements driver.Kernels.
func (k *Kernels) Recode(t quant.Type, cols int, to, file []byte) error {
	return tile.Recode(t, cols, to, file)
}

// Tune implements driver.Kernels: each shape of attention has one kernel, so there is no choice.
func (k *Kernels) Tune([]kernel.Heads, driver.Bench) {}
