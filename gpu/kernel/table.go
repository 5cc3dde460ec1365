package kernel

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Table is the kernels that a driver has, as a planner asks for them.
type Table interface {
	// Matrix describes a matrix as the driver lays it out; its Segment depends on the shape alone. The error names a type
	// or a shape that has no kernels.
	Matrix(t quant.Type, rows, cols int, pair bool) (Matrix, error)
	// Integers says whether a type multiplies quantised activations.
	Integers(t quant.Type) bool
	// Rounded says whether a type has mat-mat kernels that round to half precision: MatVec.Halves.
	Rounded(t quant.Type) bool
	// Apart says whether a program multiplies rows of prompts in half precision, with other bits than rows of answers.
	Apart(p *ir.Bound) bool
	// Caches is an error that names the format where there are no kernels for caches of a format.
	Caches(f backend.Format) error
	// Fused says whether rotation and storing may be part of Attend, or be done by Rotate. Else they are Turn's and
	// Append's, and Attend cannot quantise.
	Fused(h *Heads) bool
	// Fits says whether a MatVec has the shared memory that it needs. A norm within it needs most.
	Fits(m *MatVec) bool
	// Gathers is the size of the entries that a matrix of experts is multiplied by fastest: MaxColumns or GroupedColumns.
	Gathers(w *Matrix, biased bool) int
	// Plays says whether Plain runs the loop of an op that has no kernel.
	Plays(op ir.Op) bool
}
