package packed

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// float8 are floats of 8 bits times a scale, which is one for the tensor, one for each row or one for each block. Names
// of scales: weight_scale_inv is DeepSeek's (the scale and not its inverse, in spite of its name), weight_scale that of
// most other tools, qscale_weight Mistral's. Without a configuration there may be values without scales.
func float8(block [2]int, scaled bool) *format {
	f := &format{name: "FP8", activations: scaled}
	if scaled {
		f.ends = []string{"_scale_inv", ".weight_scale", ".qscale_weight"}
	}
	f.make = func(u *unpacker, t element.Tensor) (*Tensor, error) {
		if t.Type != element.F8E4M3 && t.Type != element.F8E5M2 {
			return nil, nil
		}
		return float8Tensor(u, t, block, scaled)
	}
	return f
}

func float8Tensor(u *unpacker, t element.Tensor, block [2]int, scaled bool) (*Tensor, error) {
	var scales []element.Tensor
	for _, name := range []string{t.Name + "_scale_inv", t.Name + "_scale",
		strings.TrimSuffix(t.Name, ".weight") + ".qscale_weight"} {
		s, ok, err := u.look(name, scaleTypes()...)
		if err != nil {
			return nil, err
		}
		if ok {
			scales = append(scales, s)
		}
	}
	made := &Tensor{Tensor: described(t.Name, t.Shape...), parts: append([]element.Tensor{t}, scales...)}
	table := float8Table(t.Type)
	switch {
	case len(scales) > 1:
		return nil, fmt.Errorf("has two scales, %s and %s: which one holds is not known", last(scales[0].Name), last(scales[1].Name))
	case len(scales) == 0 && scaled:
		return nil, fmt.Errorf("is of type %s, and its scale is missing: is the folder complete?", t.Type)
	case len(scales) == 0:
		made.bind = func(parts [][]byte) (Values, error) {
			return func(dst []float32, at int64) {
				for i := range dst {
					dst[i] = table[parts[0][at+int64(i)]]
				}
			}, nil
		}
		return made, nil
	}
	g, err := gridOf(t, scales[0], block)
	if err != nil {
		return nil, err
	}
	width, height := at(t.Shape, 2), int64(at(t.Shape, 1))
	made.bind = func(parts [][]byte) (Values, error) {
		data, factors := parts[0], parts[1]
		return rows(width, func(dst []float32, row, column int64) {
			first, codes := g.row(row, height), data[row*int64(width):]
			runs(dst, column, g.step[2], func(dst []float32, column, group int64) {
				f := scale(scales[0].Type, factors, first+group)
				for i, b := range codes[column:][:len(dst)] {
					dst[i] = table[b] * f
				}
			})
		}), nil
	}
	return made, nil
}

// float8Table has the value of each byte.
func float8Table(t element.Type) *[256]float32 {
	table := new([256]float32)
	for b := range table {
		if t == element.F8E5M2 { // the upper half of a float16
			table[b] = quant.F16ToF32(uint16(b) << 8)
		} else {
			table[b] = e4m3(byte(b))
		}
	}
	return table
}

// e4m3 is the value of a float of 4 bits of exponent, biased by 7, and 3 of mantissa, which has no infinities.
func e4m3(b byte) float32 {
	exponent, mantissa := int(b>>3&15), float64(b&7)
	v := math.Ldexp(8+mantissa, exponent-7-3)
	switch {
	case b&0x7f == 0x7f:
		v = math.NaN()
	case exponent == 0:
		v = math.Ldexp(mantissa, 1-7-3)
	}
	if b >= 0x80 {
		v = -v
	}
	return float32(v)
}

// powerOfTwo is the value of a scale that is an exponent alone, biased by 127.
func powerOfTwo(b byte) float32 {
	if b == 0xff {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(b)-127))
}

// blockOf reads a block's rows and columns.
func blockOf(list []int) (block [2]int, err error) {
	if list == nil {
		return block, nil
	}
	if len(list) != 2 || slices.Min(list) < 1 || slices.Max(list) > mostSide {
		return block, fmt.Errorf("blocks are %v, want rows and columns", list)
	}
	return [2]int(list), nil
}
