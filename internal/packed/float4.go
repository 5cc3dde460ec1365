package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

// float4 is how floats of 4 bits (E2M1) are packed: two in a byte along the rows, the first one lowest, with a scale of
// 8 bits for each group. NVFP4 has groups of 16, whose scales are floats (E4M3), and a factor for the tensor; MXFP4 has
// groups of 32, whose scales are powers of two. A value is code · (scale · factor), or code · (scale / factor): tools
// differ in what they store.
type float4 struct {
	name    string
	group   int
	codes   element.Type
	scales  []element.Type // bytes of scales may be called numbers, too
	table   *[256]float32  // of scales
	factor  string         // what the factor's name ends in; empty: there is none
	divides bool
}

// nvfp4 is NVFP4 with a factor of some name.
func nvfp4(factor string, divides bool) float4 {
	return float4{"NVFP4", 16, element.U8, []element.Type{element.F8E4M3}, float8Table(element.F8E4M3), factor, divides}
}

func mxfp4() float4 {
	table := new([256]float32)
	for b := range table {
		table[b] = powerOfTwo(byte(b))
	}
	return float4{"MXFP4", 32, element.U8, []element.Type{element.U8, element.F8E8M0}, table, "", false}
}

// modelOptFloat4 are the folders of ModelOpt with NVFP4: weight_scale, and the factor weight_scale_2.
func modelOptFloat4() *format {
	kind := nvfp4(".weight_scale_2", false)
	return &format{name: "NVFP4", activations: true, ends: []string{".weight_scale", ".weight_scale_2"},
		make: func(u *unpacker, t element.Tensor) (*Tensor, error) {
			module, ok := strings.CutSuffix(t.Name, ".weight")
			if _, scaled := u.byName[t.Name+"_scale"]; !ok || t.Type != element.U8 && !scaled {
				return nil, nil
			}
			return kind.tensor(u, t, module, ".weight_scale")
		}}
}

// compressedFloat4 is how compressed-tensors packs a module: with a factor that divides scales, or with powers of two.
func (w *compressedWeights) compressedFloat4(u *unpacker, t element.Tensor, module string) (*Tensor, error) {
	n, err := w.group()
	kind := nvfp4(".weight_global_scale", true)
	if n == mxfp4().group {
		kind = mxfp4()
	}
	switch {
	case err != nil:
		return nil, err
	case n != kind.group:
		return nil, fmt.Errorf("groups of floats of 4 bits are of %d values, want 16 (NVFP4) or 32 (MXFP4)", n)
	case w.Bits != 4 || !w.symmetric():
		return nil, fmt.Errorf("its codes are floats of %d bits, symmetric: %t; want 4, and true", w.Bits, w.symmetric())
	}
	return kind.tensor(u, t, module, ".weight_scale")
}

// tensor is the weight of a module, whose codes are t: a matrix, or a stack of them.
func (k float4) tensor(u *unpacker, t element.Tensor, module, scaleName string) (*Tensor, error) {
	d := len(t.Shape) - 1
	if d < 1 || d > 2 || slices.Min(t.Shape) < 1 || slices.Max(t.Shape) > mostSide {
		return nil, fmt.Errorf("shape is %v, want a matrix, or a stack of them", t.Shape)
	}
	if t.Type != k.codes {
		return nil, fmt.Errorf("is of type %s, and codes of %s are of type %s", t.Type, k.name, k.codes)
	}
	shape := slices.Clone(t.Shape)
	shape[d] *= 2 * k.codes.Size()
	if shape[d]%k.group != 0 {
		return nil, fmt.Errorf("has rows of %d values, which are no whole groups of %d", shape[d], k.group)
	}
	want := slices.Clone(shape)
	want[d] /= k.group
	scales, err := u.find(module+scaleName, k.scales...)
	if err == nil {
		err = shaped(scales, want...)
	}
	if err != nil {
		return nil, err
	}
	made := &Tensor{Tensor: described(module+".weight", shape...), parts: []element.Tensor{t, scales}}
	if k.factor != "" {
		factor, err := u.find(module+k.factor, element.F32)
		if err != nil {
			return nil, err
		}
		if n, err := factor.Count(); err != nil || n != 1 {
			return nil, fmt.Errorf("its %s has shape %v, want one number", last(factor.Name), factor.Shape)
		}
		made.parts = append(made.parts, factor)
	}
	made.bind = func(parts [][]byte) (Values, error) { return k.bind(parts, made.parts, shape[d]) }
	return made, nil
}

// bind reads rows of a width.
func (k float4) bind(data [][]byte, parts []element.Tensor, width int) (Values, error) {
	factor := float32(1)
	if k.factor != "" {
		factor = math.Float32frombits(binary.LittleEndian.Uint32(data[2]))
		if !(factor > 0) || math.IsInf(float64(factor), 0) {
			return nil, fmt.Errorf("its %s is %v, want a number above 0: the file is damaged", last(parts[2].Name), factor)
		}
	}
	rowBytes, groups := int64(width)/2, int64(width/k.group)
	return rows(width, func(dst []float32, row, column int64) {
		codes := data[0][row*rowBytes:][:rowBytes]
		runs(dst, column, int64(k.group), func(dst []float32, column, group int64) {
			s := k.table[data[1][row*groups+group]]
			if k.divides {
				s /= factor
			} else {
				s *= factor
			}
			for i := range dst {
				dst[i] = e2m1[code(codes, (column+int64(i))*4, 4)] * s
			}
		})
	}), nil
}

// e2m1 has the value of each float of 4 bits.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}
