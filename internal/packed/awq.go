package packed

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

// awqSettings is what config.json says of AWQ.
type awqSettings struct {
	Bits      int    `json:"bits"`
	GroupSize int    `json:"group_size"` // -1: a group is a whole row
	Version   string `json:"version"`
	ZeroPoint *bool  `json:"zero_point"`
}

// awqShift is how far the code of each of eight outputs is shifted in their word: by 0, 4, 1, 5, 2, 6, 3, 7 codes.
var awqShift = [8]uint{0, 16, 4, 20, 8, 24, 12, 28}

// awq is the format of AutoAWQ, in the version called gemm. A word of qweight, [inputs, outputs/8], and of qzeros,
// [groups, outputs/8], holds codes of eight outputs in an order of its own; scales are [groups, outputs]. A value is
// (code - zero) · scale.
func awq(s awqSettings) (*format, error) {
	switch {
	case s.Bits != 4:
		return nil, fmt.Errorf("quantization_config: bits is %d, want 4: AWQ has no others", s.Bits)
	case s.GroupSize != -1 && (s.GroupSize < 1 || s.GroupSize > mostSide):
		return nil, fmt.Errorf("quantization_config: group_size is %d, want a number above 0, or -1", s.GroupSize)
	case s.Version != "" && !strings.EqualFold(s.Version, "gemm"):
		return nil, fmt.Errorf("quantization_config: version is %.40q, want gemm: other layouts are for one kernel each", s.Version)
	case s.ZeroPoint != nil && !*s.ZeroPoint:
		return nil, fmt.Errorf("quantization_config: zero_point is false, want true: weights without zeros are not read")
	}
	return &format{name: "AWQ", ends: []string{".qweight", ".qzeros", ".scales"},
		make: func(u *unpacker, t element.Tensor) (*Tensor, error) {
			module, ok := strings.CutSuffix(t.Name, ".qweight")
			if !ok {
				return nil, nil
			}
			return awqTensor(u, t, module, s.GroupSize)
		}}, nil
}

func awqTensor(u *unpacker, t element.Tensor, module string, size int) (*Tensor, error) {
	if err := matrix(t); err != nil {
		return nil, err
	}
	if t.Type != element.I32 {
		return nil, fmt.Errorf("is of type %s, want I32", t.Type)
	}
	inputs, outputs := t.Shape[0], t.Shape[1]*len(awqShift)
	if size < 0 {
		size = inputs
	}
	groups := (inputs-1)/size + 1
	scales, err := u.find(module+".scales", scaleTypes()...)
	if err == nil {
		err = shaped(scales, groups, outputs)
	}
	if err != nil {
		return nil, err
	}
	zeros, err := u.find(module+".qzeros", element.I32)
	if err == nil {
		err = shaped(zeros, groups, t.Shape[1])
	}
	if err != nil {
		return nil, err
	}
	made := &Tensor{Tensor: described(module+".weight", outputs, inputs), parts: []element.Tensor{t, scales, zeros}}
	made.bind = func(parts [][]byte) (Values, error) {
		return rows(inputs, func(dst []float32, row, column int64) {
			columns, word, shift := int64(t.Shape[1]), row/8, awqShift[row%8]
			at := func(data []byte, line int64) int {
				return int(binary.LittleEndian.Uint32(data[4*(line*columns+word):]) >> shift & 15)
			}
			runs(dst, column, int64(size), func(dst []float32, column, group int64) {
				s, zero := scale(scales.Type, parts[1], group*int64(outputs)+row), at(parts[2], group)
				for i := range dst {
					dst[i] = float32(at(parts[0], column+int64(i))-zero) * s
				}
			})
		}), nil
	}
	return made, nil
}
