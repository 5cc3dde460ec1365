package packed

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/element"
)

// grid says which scale a value has: there is one for the whole tensor, for a row, or for a block of rows and columns.
// Dimensions are those of a stack of matrices.
type grid struct{ step, n [3]int64 }

// gridOf finds how scales lie over values, by their shapes. block is how many rows and columns a scale is for where
// there is neither one for each nor one for all; 0: there is no such number.
func gridOf(t, scales element.Tensor, block [2]int) (grid, error) {
	if len(t.Shape) < 1 || len(t.Shape) > 3 || slices.Max(t.Shape) > mostSide || slices.Min(t.Shape) < 1 {
		return grid{}, fmt.Errorf("shape is %v, want a matrix, or a stack of them", t.Shape)
	}
	shape := scales.Shape
	if n, err := scales.Count(); err == nil && n == 1 {
		shape = []int{1}
	} else if len(shape) == 1 { // one for each row of the outermost dimension
		shape = append(slices.Clone(shape), slices.Repeat([]int{1}, len(t.Shape)-1)...)
	}
	g := grid{step: [3]int64{1, 1, 1}, n: [3]int64{1, 1, 1}}
	for i := range 3 {
		d, s, b := at(t.Shape, i), at(shape, i), 0
		if i > 0 {
			b = block[i-1]
		}
		switch {
		case s == d:
		case s == 1:
			g.step[i] = int64(d)
		case b > 0 && s == (d-1)/b+1:
			g.step[i] = int64(b)
		default:
			return g, fmt.Errorf("its %s has shape %v, which does not fit values of shape %v in blocks of %v",
				last(scales.Name), scales.Shape, t.Shape, block)
		}
		g.n[i] = int64(s)
	}
	if len(shape) > len(t.Shape) {
		return g, fmt.Errorf("its %s has shape %v, more dimensions than the values have", last(scales.Name), scales.Shape)
	}
	return g, nil
}

// at is the length of dimension i of three, of which the first may be left out.
func at(shape []int, i int) int {
	if i += len(shape) - 3; i < 0 {
		return 1
	}
	return shape[i]
}

// row is where the scales of a row begin, of rows that are counted over all matrices of a stack of so many rows each.
func (g grid) row(row, height int64) int64 {
	return (row/height/g.step[0]*g.n[1] + row%height/g.step[1]) * g.n[2]
}
