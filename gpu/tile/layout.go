package tile

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Layout is how weights are stored in a row of a tile.
type Layout uint8

// Layouts. Split and SplitLow are for block types that have no layout of their own: Recode writes their rows.
const (
	None Layout = iota
	Q4_0
	Q8_0
	Q4_K
	Q6_K
	F16
	BF16
	F32
	Split
	SplitLow
	Layouts
)

// rowBytes is the bytes of a row of a tile.
var rowBytes = [Layouts]int{Q4_0: 144, Q8_0: 272, Q4_K: 148, Q6_K: 210, F16: 512, BF16: 512, F32: 1024, Split: 320,
	SplitLow: 384}

// Of is the layout of a type's weights; None: it has no kernels.
func Of(t quant.Type) Layout {
	own := map[quant.Type]Layout{quant.Q4_0: Q4_0, quant.Q8_0: Q8_0, quant.Q4_K: Q4_K, quant.Q6_K: Q6_K, quant.F16: F16,
		quant.BF16: BF16, quant.F32: F32}
	switch l, has := own[t]; {
	case has:
		return l
	case !quant.CanSplit(t):
		return None
	case t.Bounds().Low > 0:
		return SplitLow
	}
	return Split
}

// Bytes is the size of a tile.
func (l Layout) Bytes() int { return kernel.TileRows * rowBytes[l] }

// Float says whether weights are floats, which multiply float32 activations.
func (l Layout) Float() bool { return l == F16 || l == BF16 || l == F32 }

// Recoded is the bytes of a row of a tile as Recode writes it; 0: rows are packed as the file has them.
func (l Layout) Recoded() int {
	if l == Split || l == SplitLow {
		return rowBytes[l]
	}
	return 0
}

// Matrix describes a matrix. Segment is chosen by the shape: about 16 segments, so that 512 threads share a row.
func Matrix(t quant.Type, rows, cols int, pair bool) (kernel.Matrix, error) {
	l := Of(t)
	if l == None {
		return kernel.Matrix{}, fmt.Errorf("%s has no kernels", t)
	}
	if _, err := t.RowBytes(cols); err != nil {
		return kernel.Matrix{}, err
	}
	m := kernel.Matrix{Type: t, Rows: rows, Cols: cols, Pair: pair, Float: l.Float(), TileBytes: l.Bytes()}
	m.Segment = max(1, (m.KTiles()+15)/16)
	return m, nil
}

// Apart says whether a program multiplies rows of prompts in half precision, where a device can. Its bits differ from
// those of mat-vec. So it is for programs all of whose weights are floats, which have no fast mat-mat kernels with
// mat-vec's bits, and, with all, for others. rounded says which types have kernels in half precision.
func Apart(p *ir.Bound, rounded func(quant.Type) bool, all bool) bool {
	floats, some := true, false
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			for _, r := range n.Matrices() {
				t := p.Types[r]
				floats, some = floats && Of(t).Float(), some || rounded(t) && n.Op == ir.Linear
			}
		}
	}
	return some && (floats || all)
}

// Place is where packed rows go: the tile row of the first 32, and how many tile rows further each next 32 go.
func Place(p *kernel.Pack) (first, step int, err error) {
	if p.First%kernel.TileRows != 0 || p.First+p.Rows > p.W.Rows {
		return 0, 0, fmt.Errorf("rows %d to %d of %d: want whole tiles of %d rows", p.First, p.First+p.Rows, p.W.Rows,
			kernel.TileRows)
	}
	if first, step = p.First/kernel.TileRows, 1; p.W.Pair {
		first, step = 2*first, 2
		if p.Up {
			first++
		}
	}
	return first, step, nil
}
