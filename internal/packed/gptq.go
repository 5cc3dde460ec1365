package packed

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

// gptqSettings is what config.json says of GPTQ.
type gptqSettings struct {
	Bits      int            `json:"bits"`
	GroupSize int            `json:"group_size"` // -1: a group is a whole row
	Format    string         `json:"checkpoint_format"`
	Marlin    bool           `json:"is_marlin_format"`
	Dynamic   map[string]any `json:"dynamic"` // bits and groups that differ from module to module
}

// gptq is the format of AutoGPTQ and GPTQModel. Codes run down the columns of qweight, [inputs·bits/32, outputs], so
// that a word holds codes of one output; zeros run along the rows of qzeros, [groups, outputs·bits/32]; scales are
// [groups, outputs]; g_idx has the group of each input. A value is (code - zero) · scale. The format's first version
// has zeros less one; what wraps around by that is not undone, as it is not by the kernels that compute with it.
func gptq(s gptqSettings) (*format, error) {
	zero := 1
	switch {
	case s.Format == "gptq_v2":
		zero = 0
	case s.Format != "" && s.Format != "gptq" || s.Marlin:
		return nil, fmt.Errorf("quantization_config: checkpoint_format is %.40q, want gptq or gptq_v2: "+
			"other layouts are for one kernel each", s.Format)
	}
	if s.Bits != 2 && s.Bits != 3 && s.Bits != 4 && s.Bits != 8 {
		return nil, fmt.Errorf("quantization_config: bits is %d, want 2, 3, 4 or 8", s.Bits)
	}
	if s.GroupSize != -1 && (s.GroupSize < 1 || s.GroupSize > mostSide) {
		return nil, fmt.Errorf("quantization_config: group_size is %d, want a number above 0, or -1", s.GroupSize)
	}
	return &format{name: "GPTQ", ends: []string{".qweight", ".qzeros", ".scales", ".g_idx"},
		make: func(u *unpacker, t element.Tensor) (*Tensor, error) {
			module, ok := strings.CutSuffix(t.Name, ".qweight")
			if !ok {
				return nil, nil
			}
			return gptqTensor(u, t, module, s, zero)
		}}, nil
}

// gptqTensor finds the parts of a tensor. Its bits are what its shapes say.
func gptqTensor(u *unpacker, t element.Tensor, module string, s gptqSettings, zero int) (*Tensor, error) {
	if err := matrix(t); err != nil {
		return nil, err
	}
	if t.Type != element.I32 {
		return nil, fmt.Errorf("is of type %s, want I32", t.Type)
	}
	scales, err := u.find(module+".scales", scaleTypes()...)
	if err != nil {
		return nil, err
	}
	zeros, err := u.find(module+".qzeros", element.I32)
	if err != nil {
		return nil, err
	}
	if err := matrix(scales); err != nil {
		return nil, err
	}
	groups, outputs := scales.Shape[0], t.Shape[1]
	inputs, bits, size, err := s.sizes(t, zeros, groups)
	if err != nil {
		return nil, err
	}
	if err := shaped(scales, groups, outputs); err != nil {
		return nil, err
	}
	if err := shaped(zeros, groups, words(outputs, bits)); err != nil {
		return nil, err
	}
	made := &Tensor{Tensor: described(module+".weight", outputs, inputs), parts: []element.Tensor{t, scales, zeros}}
	index, ok, err := u.look(module+".g_idx", element.I32)
	if err == nil && ok {
		made.parts, err = append(made.parts, index), shaped(index, inputs)
	}
	if err != nil {
		return nil, err
	}
	made.bind = func(parts [][]byte) (Values, error) {
		x := gptqReader{codes: parts[0], scales: parts[1], zeros: parts[2], kind: scales.Type, bits: uint(bits), zero: zero,
			outputs: int64(outputs), zeroWords: int64(zeros.Shape[1])}
		var numbers []byte
		if len(parts) > 3 {
			numbers = parts[3]
		}
		var err error
		if x.order, err = groupingOf(numbers, int64(groups), int64(size)); err != nil {
			return nil, err
		}
		return rows(inputs, x.read), nil
	}
	return made, nil
}

// sizes are how many inputs a tensor has, of how many bits a code is, and of how many inputs a group.
func (s *gptqSettings) sizes(codes, zeros element.Tensor, groups int) (inputs, bits, size int, err error) {
	bits = s.Bits
	if len(s.Dynamic) > 0 && len(zeros.Shape) == 2 {
		if bits = zeros.Shape[1] * wordBits / codes.Shape[1]; bits < 2 || bits > 8 {
			return 0, 0, 0, fmt.Errorf("has codes of %d bits by its shapes, want 2 to 8", bits)
		}
	}
	if inputs, err = codesIn(codes.Shape[0], bits); err != nil {
		return 0, 0, 0, err
	}
	size = s.GroupSize
	if len(s.Dynamic) > 0 {
		size = (inputs-1)/groups + 1
	} else if size < 0 {
		size = inputs
	}
	if want := (inputs-1)/size + 1; groups != want {
		err = fmt.Errorf("its scales are of %d groups, and %d inputs in groups of %d are %d", groups, inputs, size, want)
	}
	return inputs, bits, size, err
}

// gptqReader reads the values of a tensor.
type gptqReader struct {
	codes, scales, zeros []byte

	kind    element.Type // of scales
	bits    uint
	zero    int // added to every zero
	outputs int64
	order   grouping

	zeroWords int64 // of a row of zeros
}

func (x *gptqReader) read(dst []float32, row, column int64) {
	codes := columnOf{data: x.codes, column: row, columns: x.outputs, bits: x.bits}
	x.order.split(dst, column, func(dst []float32, column, group int64) {
		s := scale(x.kind, x.scales, group*x.outputs+row)
		zero := int(code(x.zeros[4*group*x.zeroWords:], row*int64(x.bits), x.bits)) + x.zero
		for i := range dst {
			c := codes.code((column + int64(i)) * int64(x.bits))
			dst[i] = float32(int(c)-zero) * s
		}
	})
}
