package packed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

// mlxGroups is how a module's weights are packed.
type mlxGroups struct {
	Bits      int    `json:"bits"`
	GroupSize int    `json:"group_size"`
	Mode      string `json:"mode"`
}

// mlxSettings reads what config.json says as quantization: how modules are packed, and those that are packed otherwise
// by their names.
func mlxSettings(text []byte) (all mlxGroups, others map[string]mlxGroups, err error) {
	if err := json.Unmarshal(text, &all); err != nil {
		return all, nil, err
	}
	var named map[string]json.RawMessage
	if err := json.Unmarshal(text, &named); err != nil {
		return all, nil, err
	}
	others = map[string]mlxGroups{}
	for name, value := range named {
		if len(value) == 0 || value[0] != '{' {
			continue // the settings of all; or false, of modules that are not packed and have no scales
		}
		one := all
		if err := json.Unmarshal(value, &one); err != nil {
			return all, nil, fmt.Errorf("%.120s: %w", name, err)
		}
		others[name] = one
	}
	return all, others, nil
}

// mlxFloats are modes whose codes are floats of 4 bits, without biases.
func mlxFloats() map[string]float4 {
	mx, nv := mxfp4(), nvfp4("", false)
	for _, k := range []*float4{&mx, &nv} {
		k.codes, k.scales = element.U32, []element.Type{element.U8}
	}
	return map[string]float4{"mxfp4": mx, "nvfp4": nv}
}

func (g mlxGroups) check() error {
	floats, float := mlxFloats()[g.Mode]
	switch {
	case float && (g.Bits != 4 || g.GroupSize != floats.group):
		return fmt.Errorf("mode is %s with bits %d and group_size %d, want 4 and %d", g.Mode, g.Bits, g.GroupSize, floats.group)
	case float:
		return nil
	case g.Mode != "" && g.Mode != "affine":
		return fmt.Errorf("mode is %.40q, want affine, mxfp4 or nvfp4", g.Mode)
	case !slices.Contains([]int{2, 3, 4, 5, 6, 8}, g.Bits):
		return fmt.Errorf("bits is %d, want 2, 3, 4, 5, 6 or 8", g.Bits)
	case !slices.Contains([]int{32, 64, 128}, g.GroupSize):
		return fmt.Errorf("group_size is %d, want 32, 64 or 128", g.GroupSize)
	}
	return nil
}

// mlx is the affine format of MLX. Codes run along the rows of weight, [outputs, inputs·bits/32] or a stack of those;
// scales and biases are [outputs, groups]. A value is code · scale + bias. Modules without scales are plain. Other
// modes have floats of 4 bits.
func mlx(text []byte) (*format, error) {
	all, others, err := mlxSettings(text)
	if err == nil {
		err = all.check()
	}
	if err != nil {
		return nil, fmt.Errorf("quantization: %w", err)
	}
	return &format{name: "MLX", ends: []string{".scales", ".biases"},
		make: func(u *unpacker, t element.Tensor) (*Tensor, error) {
			module, ok := strings.CutSuffix(t.Name, ".weight")
			if _, packed := u.byName[module+".scales"]; !ok || !packed && t.Type != element.U32 {
				return nil, nil // words without scales are an error below
			}
			g, ok := others[module]
			if !ok {
				g = all
			}
			if err := g.check(); err != nil {
				return nil, fmt.Errorf("config.json: quantization: %w", err)
			}
			if k, ok := mlxFloats()[g.Mode]; ok {
				return k.tensor(u, t, module, ".scales")
			}
			return mlxTensor(u, t, module, g)
		}}, nil
}

func mlxTensor(u *unpacker, t element.Tensor, module string, g mlxGroups) (*Tensor, error) {
	d := len(t.Shape) - 1
	if d < 1 || d > 2 || slices.Min(t.Shape) < 1 || slices.Max(t.Shape) > mostSide {
		return nil, fmt.Errorf("shape is %v, want a matrix, or a stack of them", t.Shape)
	}
	if t.Type != element.U32 {
		return nil, fmt.Errorf("is of type %s, want U32", t.Type)
	}
	inputs, err := codesIn(t.Shape[d], g.Bits)
	if err == nil && inputs%g.GroupSize != 0 {
		err = fmt.Errorf("has rows of %d values, which are no whole groups of %d", inputs, g.GroupSize)
	}
	if err != nil {
		return nil, err
	}
	want := slices.Clone(t.Shape)
	want[d] = inputs / g.GroupSize
	scales, err := u.find(module+".scales", scaleTypes()...)
	if err == nil {
		err = shaped(scales, want...)
	}
	if err != nil {
		return nil, err
	}
	biases, err := u.find(module+".biases", scales.Type)
	if err == nil {
		err = shaped(biases, want...)
	}
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(t.Shape)
	shape[d] = inputs
	made := &Tensor{Tensor: described(t.Name, shape...), parts: []element.Tensor{t, scales, biases}}
	rowBytes, groups := int64(t.Shape[d])*4, int64(want[d])
	made.bind = func(parts [][]byte) (Values, error) {
		return rows(inputs, func(dst []float32, row, column int64) {
			codes := parts[0][row*rowBytes:][:rowBytes]
			runs(dst, column, int64(g.GroupSize), func(dst []float32, column, group int64) {
				s := scale(scales.Type, parts[1], row*groups+group)
				b := scale(scales.Type, parts[2], row*groups+group)
				for i := range dst {
					c := code(codes, (column+int64(i))*int64(g.Bits), uint(g.Bits))
					dst[i] = float32(float32(c)*s) + b
				}
			})
		}), nil
	}
	return made, nil
}
