package kernel

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Table tells a planner which kernels a driver has.
type Table interface {
	// Matrix describes a matrix as the driver lays it out; its Segment depends on the shape alone. The error names a type
	// or a shape that has no kernels.
	Matrix(t quant.Type, rows, cols int, pair bool) (Matrix, error)
	// Integers says whether weights of a type multiply quantised activations, and not float32.
	Integers(t quant.Type) bool
	// Rounded says whether a type has mat-mat kernels that round to half precision, as MatVec.Halves asks for.
	Rounded(t quant.Type) bool
	// Apart says whether rows of prompts are multiplied in half precision, so that their bits differ from those of rows
	// that are generated.
	Apart(p *ir.Bound) bool
	// Caches returns an error that names the format if there are no kernels for caches of a format.
	Caches(f backend.Format) error
	// Fused says whether Attend and Rotate can rotate heads and store keys and values themselves. If not, Turn and
	// Append do that, and Attend cannot quantise its results.
	Fused(h *Heads) bool
	// AttentionRows is how many rows an Attend of a prompt has at most: the partial results of each take memory.
	AttentionRows() int
	// Fits says whether a workgroup has the shared memory that a MatVec needs. One that normalises its input needs
	// most.
	Fits(m *MatVec) bool
	// Gathers is how many pairs an entry of Group should have for the fastest product with a matrix of experts:
	// MaxColumns or GroupedColumns.
	Gathers(w *Matrix, biased bool) int
	// Plays says whether the driver computes an op that has no kernel by the op's reference loop, as Plain.
	Plays(op ir.Op) bool
}
