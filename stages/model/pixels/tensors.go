package pixels

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Tensor is a tensor of a file as a program wants it.
type Tensor struct {
	ir.Tensor
	From int // index into the file's tensors; Computed: the file does not have it
	// Turn is the number of pixels of a window, in whose order the file has the values of each channel. The program wants
	// the channels of each pixel. 0: the tensor stays as it is.
	Turn int
}

// Computed marks a tensor that whoever computes the program makes, and changes between steps. It is F32.
const Computed = -1

// Tensors lists a file's tensors by their names in the program. rename may be nil.
func Tensors(file []ir.Tensor, rename func(name string) string) []Tensor {
	all := make([]Tensor, len(file))
	for i, t := range file {
		if rename != nil {
			t.Name = rename(t.Name)
		}
		all[i] = Tensor{Tensor: t, From: i}
		if s := t.Shape; len(s) == 4 && s[0] > 0 && s[1] > 0 {
			all[i].Shape = []int{s[0] * s[1] * s[2], s[3]}
			if s[0]*s[1] > 1 {
				all[i].Turn = s[0] * s[1]
			}
		}
	}
	return all
}

// bind finds a program's weights among the tensors.
func bind(p *ir.Program, tensors []Tensor) (*ir.Bound, error) {
	list := make([]ir.Tensor, len(tensors))
	for i := range tensors {
		list[i] = tensors[i].Tensor
	}
	return ir.Bind(p, list)
}

// Turned is a tensor's bytes in the order of the program.
func (t *Tensor) Turned(data []byte) ([]byte, error) {
	if t.Turn == 0 {
		return slices.Clone(data), nil
	}
	if t.Type.Block() != 1 {
		return nil, fmt.Errorf("%s is of type %s, want F32, F16 or BF16 for a convolution", t.Name, t.Type)
	}
	rows, cols := t.Shape[1], t.Shape[0]
	size, channels := len(data)/(rows*cols), cols/t.Turn
	out := make([]byte, 0, len(data))
	for r := range rows {
		row := data[r*cols*size:]
		for pixel := range t.Turn {
			for c := range channels {
				out = append(out, row[(c*t.Turn+pixel)*size:][:size]...)
			}
		}
	}
	return out, nil
}

// sizes are the shapes of tensors by name.
type sizes map[string][]int

func sizesOf(tensors []Tensor) sizes {
	all := sizes{}
	for i := range tensors {
		all[tensors[i].Name] = tensors[i].Shape
	}
	return all
}

func (s sizes) has(name string) bool { return s[name] != nil }

// matrix is the number of outputs and inputs of a product, or of a convolution with a window of so many pixels.
func (s sizes) matrix(name string, window int) (out, in int, err error) {
	const most = 1 << 16
	shape, ok := s[name+".weight"]
	if !ok {
		return 0, 0, fmt.Errorf("%s.weight is missing", name)
	}
	if len(shape) == 2 && shape[0]%window == 0 {
		out, in = shape[1], shape[0]/window
	}
	if out < 1 || in < 1 || out > most || in > most {
		return 0, 0, fmt.Errorf("%s.weight is %v, want windows of %d pixels and 1 to %d channels", name, shape, window, most)
	}
	return out, in, nil
}

// count is how many parts of a list there are, whose tensors are named by a number and a first one's rest.
func (s sizes) count(list, first string) (n int) {
	for s.has(fmt.Sprintf("%s.%d.%s", list, n, first)) {
		n++
	}
	return n
}
