package packed

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

// compressedSettings is what config.json says of compressed-tensors.
type compressedSettings struct {
	Format   string                     `json:"format"`
	Groups   map[string]compressedGroup `json:"config_groups"`
	Sparsity struct {
		Format string `json:"format"`
	} `json:"sparsity_config"`
	Transform struct {
		Groups map[string]any `json:"config_groups"`
	} `json:"transform_config"`
}

// compressedGroup is how some modules are packed.
type compressedGroup struct {
	Format  string             `json:"format"`
	Targets []string           `json:"targets"` // names of modules, expressions behind re:, or classes
	Weights *compressedWeights `json:"weights"`
}

type compressedWeights struct {
	Bits      int    `json:"num_bits"`
	Type      string `json:"type"`
	Symmetric *bool  `json:"symmetric"` // true if it is not said
	GroupSize *int   `json:"group_size"`
	Block     []int  `json:"block_structure"`
}

// compressed is the format of compressed-tensors: whole numbers packed into words (pack-quantized), whole numbers as
// they are (int-quantized), or FP8 (float-quantized), each with weight_scale. A value is (code - zero) · scale. Packed
// codes are stored with half their range added, zeros likewise. Floats of 4 bits: see float4.
func compressed(s compressedSettings) (*format, error) {
	known := []string{"", "dense", "pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mixed-precision",
		"nvfp4-pack-quantized", "mxfp4-pack-quantized"}
	formats := []string{s.Format}
	for _, g := range s.Groups {
		formats = append(formats, g.Format)
	}
	slices.Sort(formats)
	for _, f := range formats {
		if !slices.Contains(known, f) {
			return nil, fmt.Errorf("quantization_config: format is %.40q, want one of %s", f, strings.Join(known[2:], ", "))
		}
	}
	if f := s.Sparsity.Format; f != "" && f != "dense" {
		return nil, fmt.Errorf("quantization_config: sparsity_config: format is %.40q, want dense", f)
	}
	if len(s.Transform.Groups) > 0 {
		return nil, fmt.Errorf("quantization_config: transform_config is not empty: weights that are rotated are not read")
	}
	targets, err := targetsOf(s.Groups)
	if err != nil {
		return nil, err
	}
	f := &format{name: "compressed-tensors", activations: true,
		ends: []string{".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_shape", ".weight_g_idx",
			".weight_global_scale"}}
	f.make = func(u *unpacker, t element.Tensor) (*Tensor, error) {
		module, packed := strings.CutSuffix(t.Name, ".weight_packed")
		module, whole := strings.CutSuffix(module, ".weight")
		float := (t.Type == element.F8E4M3 || t.Type == element.F8E5M2) && !f.belongs(t.Name)
		if !packed && !float && !(whole && t.Type == element.I8) {
			return nil, nil
		}
		w, err := targets.find(module)
		if err != nil {
			return nil, err
		}
		switch {
		case packed && w.Type == "float":
			return w.compressedFloat4(u, t, module)
		case packed:
			return wordsTensor(u, t, module, w)
		case float:
			block, err := blockOf(w.Block)
			if err != nil {
				return nil, err
			}
			return float8Tensor(u, t, block, true)
		}
		return bytesTensor(u, t, w)
	}
	return f, nil
}

// targets finds the group of a module.
type targets struct {
	names   map[string]*compressedWeights
	some    []target // by expressions
	classes []*compressedWeights
}

type target struct {
	matches *regexp.Regexp
	weights *compressedWeights
}

// targetsOf reads the targets of all groups. Groups without weights are of activations.
func targetsOf(groups map[string]compressedGroup) (*targets, error) {
	t := &targets{names: map[string]*compressedWeights{}}
	var order []string
	for name := range groups {
		order = append(order, name)
	}
	slices.Sort(order)
	for _, name := range order {
		g := groups[name]
		if g.Weights == nil {
			continue
		}
		for _, to := range g.Targets {
			pattern, expression := strings.CutPrefix(to, "re:")
			switch {
			case expression:
				matches, err := regexp.Compile("^(?:" + pattern + ")")
				if err != nil {
					return nil, fmt.Errorf("quantization_config: %.40s: %w", name, err)
				}
				t.some = append(t.some, target{matches, g.Weights})
			case to != "" && to[0] >= 'A' && to[0] <= 'Z': // Linear; names of modules begin small
				t.classes = append(t.classes, g.Weights)
			default:
				t.names[to] = g.Weights
			}
		}
	}
	return t, nil
}

// find returns how a module is packed: names come before expressions, and those before classes.
func (t *targets) find(module string) (*compressedWeights, error) {
	if w := t.names[module]; w != nil {
		return w, nil
	}
	for _, s := range t.some {
		if s.matches.MatchString(module) {
			return s.weights, nil
		}
	}
	switch {
	case len(t.classes) == 0:
		return nil, fmt.Errorf("no target of quantization_config is it: how it is packed is not known")
	case slices.ContainsFunc(t.classes, func(w *compressedWeights) bool { return w.Bits != t.classes[0].Bits }):
		return nil, fmt.Errorf("quantization_config has classes of different bits: which it is, is not known")
	}
	return t.classes[0], nil
}

// group is the number of values of a group; 0: a row, or all.
func (w *compressedWeights) group() (int, error) {
	if w.GroupSize == nil || *w.GroupSize == -1 {
		return 0, nil
	}
	if n := *w.GroupSize; n < 1 || n > mostSide {
		return 0, fmt.Errorf("groups are of %d values, want a number above 0, or -1", n)
	}
	return *w.GroupSize, nil
}

func (w *compressedWeights) symmetric() bool { return w.Symmetric == nil || *w.Symmetric }

// wordsTensor is a tensor of codes packed into words: weight_packed is [outputs, inputs·bits/32], weight_scale
// [outputs, groups], weight_zero_point [outputs·bits/32, groups] with codes that run down its columns.
func wordsTensor(u *unpacker, t element.Tensor, module string, w *compressedWeights) (*Tensor, error) {
	if err := matrix(t); err != nil {
		return nil, err
	}
	switch {
	case t.Type != element.I32:
		return nil, fmt.Errorf("is of type %s, want I32", t.Type)
	case w.Bits < 2 || w.Bits > 8 || w.Type != "" && w.Type != "int":
		return nil, fmt.Errorf("its codes are of %d bits of type %.40q, want int of 2 to 8", w.Bits, w.Type)
	}
	outputs := t.Shape[0]
	inputs, err := codesIn(t.Shape[1], w.Bits)
	if err != nil {
		return nil, err
	}
	group, err := w.group()
	if err != nil {
		return nil, err
	}
	scales, err := u.find(module+".weight_scale", scaleTypes()...)
	if err != nil {
		return nil, err
	}
	made := &Tensor{Tensor: described(module+".weight", outputs, inputs)}
	g, err := gridOf(made.Tensor, scales, [2]int{0, group})
	if err != nil {
		return nil, err
	}
	x := wordsReader{grid: g, kind: scales.Type, bits: uint(w.Bits), rowBytes: int64(t.Shape[1]) * 4,
		outputs: int64(outputs)}
	made.parts = []element.Tensor{t, scales}
	if err := x.others(u, made, module, w.symmetric()); err != nil {
		return nil, err
	}
	made.bind = func(parts [][]byte) (Values, error) {
		bound := x
		if err := bound.bind(parts, outputs, inputs); err != nil {
			return nil, err
		}
		return rows(inputs, bound.read), nil
	}
	return made, nil
}

// wordsReader reads the values of a tensor of packed words.
type wordsReader struct {
	grid     grid
	kind     element.Type // of scales
	bits     uint
	rowBytes int64
	outputs  int64

	zeroAt, shapeAt, orderAt int // numbers of parts; 0: there is none

	codes, scales, zeros []byte
	order                grouping
}

// others finds the parts that there may be: zeros, groups of columns, and the shape, which is checked when it is read.
func (x *wordsReader) others(u *unpacker, made *Tensor, module string, symmetric bool) error {
	outputs, inputs := made.Shape[0], made.Shape[1]
	optional := func(name string, kind element.Type, at *int, want ...int) error {
		t, ok, err := u.look(module+name, kind)
		if err != nil || !ok {
			return err
		}
		*at = len(made.parts)
		made.parts = append(made.parts, t)
		return shaped(t, want...)
	}
	if err := optional(".weight_shape", element.I64, &x.shapeAt, 2); err != nil {
		return err
	}
	if err := optional(".weight_g_idx", element.I32, &x.orderAt, inputs); err != nil {
		return err
	}
	err := optional(".weight_zero_point", element.I32, &x.zeroAt, words(outputs, int(x.bits)), int(x.grid.n[2]))
	switch {
	case err != nil:
		return err
	case x.zeroAt == 0 && !symmetric:
		return fmt.Errorf("is not symmetric, and its weight_zero_point is missing: is the folder complete?")
	case x.zeroAt > 0 && x.grid.n[1] != int64(outputs):
		return fmt.Errorf("its weight_zero_point has one for each row, and weight_scale has not")
	}
	return nil
}

func (x *wordsReader) bind(parts [][]byte, outputs, inputs int) error {
	x.codes, x.scales = parts[0], parts[1]
	if x.zeroAt > 0 {
		x.zeros = parts[x.zeroAt]
	}
	if x.shapeAt > 0 {
		shape := parts[x.shapeAt]
		got := [2]uint64{binary.LittleEndian.Uint64(shape), binary.LittleEndian.Uint64(shape[8:])}
		if got != [2]uint64{uint64(outputs), uint64(inputs)} {
			return fmt.Errorf("its weight_shape says %v, and there are codes for [%d %d]: the files do not belong together",
				got, outputs, inputs)
		}
	}
	var numbers []byte
	if x.orderAt > 0 {
		numbers = parts[x.orderAt]
	}
	var err error
	x.order, err = groupingOf(numbers, x.grid.n[2], x.grid.step[2])
	return err
}

func (x *wordsReader) read(dst []float32, row, column int64) {
	codes := x.codes[row*x.rowBytes:][:x.rowBytes]
	first := x.grid.row(row, x.outputs)
	x.order.split(dst, column, func(dst []float32, column, group int64) {
		s, zero := scale(x.kind, x.scales, first+group), 1<<(x.bits-1)
		if x.zeros != nil {
			zeros := columnOf{data: x.zeros, column: group, columns: x.grid.n[2], bits: x.bits}
			zero = int(zeros.code(row * int64(x.bits)))
		}
		for i := range dst {
			c := code(codes, (column+int64(i))*int64(x.bits), x.bits)
			dst[i] = float32(int(c)-zero) * s
		}
	})
}

// bytesTensor is a tensor of whole numbers of 8 bits, with zeros that lie as its scales do.
func bytesTensor(u *unpacker, t element.Tensor, w *compressedWeights) (*Tensor, error) {
	group, err := w.group()
	if err != nil {
		return nil, err
	}
	block := [2]int{0, group}
	if w.Block != nil {
		if block, err = blockOf(w.Block); err != nil {
			return nil, err
		}
	}
	scales, err := u.find(t.Name+"_scale", scaleTypes()...)
	if err != nil {
		return nil, err
	}
	g, err := gridOf(t, scales, block)
	if err != nil {
		return nil, err
	}
	made := &Tensor{Tensor: described(t.Name, t.Shape...), parts: []element.Tensor{t, scales}}
	zeros, ok, err := u.look(t.Name+"_zero_point", element.I8)
	if err == nil && ok {
		made.parts, err = append(made.parts, zeros), shaped(zeros, scales.Shape...)
	}
	switch {
	case err != nil:
		return nil, err
	case !ok && !w.symmetric():
		return nil, fmt.Errorf("is not symmetric, and its weight_zero_point is missing: is the folder complete?")
	}
	width, height := at(t.Shape, 2), int64(at(t.Shape, 1))
	made.bind = func(parts [][]byte) (Values, error) {
		return rows(width, func(dst []float32, row, column int64) {
			first, codes := g.row(row, height), parts[0][row*int64(width):]
			runs(dst, column, g.step[2], func(dst []float32, column, group int64) {
				s, zero := scale(scales.Type, parts[1], first+group), 0
				if len(parts) > 2 {
					zero = int(int8(parts[2][first+group]))
				}
				for i, b := range codes[column:][:len(dst)] {
					dst[i] = float32(int(int8(b))-zero) * s
				}
			})
		}), nil
	}
	return made, nil
}
