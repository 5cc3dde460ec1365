package convert

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/packed"
)

// View is elements of one tensor of the folder in some order: a walk from Offset with a stride for each dimension,
// the outermost first. All rearrangements that converting needs are such walks, one behind the other.
type View struct {
	Source element.Tensor
	Offset int64 // in elements
	Dims   []Dim

	Factors []float32      // every element is multiplied by each in turn
	Made    *packed.Tensor // how the source's values are made, if they do not lie in its bytes
}

// Dim is one dimension of a walk: N steps of Stride elements.
type Dim struct{ N, Stride int64 }

// whole is all of a tensor as it lies.
func whole(t element.Tensor) View {
	v := View{Source: t, Dims: make([]Dim, len(t.Shape))}
	stride := int64(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		v.Dims[i] = Dim{int64(t.Shape[i]), stride}
		stride *= int64(t.Shape[i])
	}
	return v
}

// shape lists the lengths of the dimensions.
func (v View) shape() []int {
	shape := make([]int, len(v.Dims))
	for i, d := range v.Dims {
		shape[i] = int(d.N)
	}
	return shape
}

// count is the number of elements.
func (v View) count() int64 {
	n := int64(1)
	for _, d := range v.Dims {
		n *= d.N
	}
	return n
}

// fault is a shape that is not what the model's configuration says. It travels as a panic from the rule that meets it
// to the loop over tensors, and no further: rules stay expressions.
type fault struct{ err error }

func failf(format string, args ...any) { panic(fault{fmt.Errorf(format, args...)}) }

// dims checks that there are at least n dimensions.
func (v View) dims(n int) {
	if len(v.Dims) < n {
		failf("shape is %v, want %d dimensions", v.Source.Shape, n)
	}
}

// split makes several dimensions of one; their lengths multiply to its. One of the lengths may be 0: what is left.
func (v View) split(d int, lengths ...int) View {
	v.dims(d + 1)
	all := v.Dims[d].N
	known, open := int64(1), -1
	for i, n := range lengths {
		switch {
		case n == 0:
			open = i
		case n < 0 || int64(n) > all/known:
			failf("shape is %v: dimension %d does not divide into %v", v.Source.Shape, d, lengths)
		default:
			known *= int64(n)
		}
	}
	if all%known != 0 || open < 0 && known != all {
		failf("shape is %v: dimension %d does not divide into %v", v.Source.Shape, d, lengths)
	}
	parts := make([]Dim, len(lengths))
	stride := v.Dims[d].Stride
	for i := len(lengths) - 1; i >= 0; i-- {
		n := int64(lengths[i])
		if i == open {
			n = all / known
		}
		parts[i] = Dim{n, stride}
		stride *= n
	}
	v.Dims = append(append(append([]Dim(nil), v.Dims[:d]...), parts...), v.Dims[d+1:]...)
	return v
}

// narrow keeps n steps of a dimension, from one on.
func (v View) narrow(d, from, n int) View {
	v.dims(d + 1)
	if from < 0 || n < 1 || int64(n) > v.Dims[d].N-int64(from) {
		failf("shape is %v: dimension %d has no part of %d from %d", v.Source.Shape, d, n, from)
	}
	v.Dims = append([]Dim(nil), v.Dims...)
	v.Offset += int64(from) * v.Dims[d].Stride
	v.Dims[d].N = int64(n)
	return v
}

// pick fixes dimension d at index at, and removes that dimension.
func (v View) pick(d, at int) View {
	v = v.narrow(d, at, 1)
	v.Dims = append(v.Dims[:d], v.Dims[d+1:]...)
	return v
}

// times multiplies every element.
func (v View) times(factors ...float64) View {
	v.Factors = append([]float32(nil), v.Factors...)
	for _, f := range factors {
		v.Factors = append(v.Factors, float32(f))
	}
	return v
}

// swap exchanges two dimensions.
func (v View) swap(a, b int) View {
	v.dims(max(a, b) + 1)
	v.Dims = append([]Dim(nil), v.Dims...)
	v.Dims[a], v.Dims[b] = v.Dims[b], v.Dims[a]
	return v
}

// Runs merges the innermost dimensions that are contiguous in memory. It returns the remaining outer dimensions, and
// the number of contiguous elements at each of their steps.
func (v View) Runs() (outer []Dim, run int64) {
	run = 1
	n := len(v.Dims)
	for n > 0 && (v.Dims[n-1].Stride == run || v.Dims[n-1].N == 1) {
		run *= v.Dims[n-1].N
		n--
	}
	return v.Dims[:n], run
}

// Contiguous says whether the elements are one contiguous run of bytes and are multiplied by no factors.
func (v View) Contiguous() bool {
	outer, _ := v.Runs()
	return len(outer) == 0 && v.Factors == nil && v.Made == nil
}

// Walk calls use with the offsets of all runs in order, until one fails.
func (v View) Walk(use func(at int64) error) error {
	outer, _ := v.Runs()
	step := make([]int64, len(outer))
	at := v.Offset
	if v.count() == 0 {
		return nil
	}
	for {
		if err := use(at); err != nil {
			return err
		}
		d := len(outer) - 1
		for ; d >= 0; d-- {
			at += outer[d].Stride
			if step[d]++; step[d] < outer[d].N {
				break
			}
			at -= outer[d].N * outer[d].Stride
			step[d] = 0
		}
		if d < 0 {
			return nil
		}
	}
}
