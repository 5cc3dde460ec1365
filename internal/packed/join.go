package packed

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/element"
)

// Join makes one tensor of the parts that several files have of it: rows one behind the other (dimension 0), or columns
// (1). It has the type of its parts. One part may have any shape.
func Join(name string, dimension int, parts []element.Tensor) (*Tensor, error) {
	first := parts[0]
	if !first.Type.Real() {
		return nil, fmt.Errorf("tensor %.120q: is of type %s, want F32, F16 or BF16", name, first.Type)
	}
	t := &Tensor{Tensor: element.Tensor{Name: name, Type: first.Type, Shape: first.Shape}, parts: parts}
	rowCount, counts := int64(1), make([]int64, len(parts))
	for i, p := range parts {
		if len(parts) == 1 {
			n, err := p.Count()
			if counts[0] = n; err != nil || n == 0 {
				return nil, fmt.Errorf("tensor %.120q: shape is %v: want values", p.Name, p.Shape)
			}
			break
		}
		if err := matrix(p); err != nil {
			return nil, fmt.Errorf("tensor %.120q: %w", p.Name, err)
		}
		if p.Type != first.Type || p.Shape[1-dimension] != first.Shape[1-dimension] {
			return nil, fmt.Errorf("tensor %.120q: is %s of shape %v, and the part before it %s of shape %v: "+
				"the files do not belong together", p.Name, p.Type, p.Shape, first.Type, first.Shape)
		}
		counts[i] = int64(p.Shape[dimension])
	}
	if len(parts) > 1 {
		rowCount = t.widen(dimension, counts)
	}
	n, err := t.Count()
	if err != nil {
		return nil, fmt.Errorf("tensor %.120q: %w", name, err)
	}
	size := int64(first.Type.Size())
	t.bind = func(data [][]byte) (Values, error) {
		return rows(int(n/rowCount), func(dst []float32, row, column int64) {
			for i, count := range counts {
				if column >= count {
					column -= count
					continue
				}
				run := min(int64(len(dst)), count-column)
				for j := range dst[:run] {
					dst[j] = first.Type.Widen(data[i][(row*count+column+int64(j))*size:])
				}
				if dst, column = dst[run:], 0; len(dst) == 0 {
					return
				}
			}
		}), nil
	}
	return t, nil
}

// widen sets the shape to that of all parts side by side. It returns how many rows that are, and makes counts those of
// values that each part has of one. What lies one behind the other is one row.
func (t *Tensor) widen(dimension int, counts []int64) (rowCount int64) {
	t.Shape = slices.Clone(t.Shape)
	t.Shape[dimension] = 0
	for _, n := range counts {
		t.Shape[dimension] += int(n)
	}
	if dimension == 1 {
		return int64(t.Shape[0])
	}
	for i := range counts {
		counts[i] *= int64(t.Shape[1])
	}
	return 1
}
