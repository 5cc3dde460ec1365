package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/packed"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Tensor is a tensor of the GGUF file, and where its values come from: Views one behind the other, or Values.
type Tensor struct {
	Name   string
	Shape  []int  // of ggml: Shape[0] is the length of a row
	Views  []View // of element types that are numbers, or, with Scales, of the bytes of blocks
	Change Change
	Values []float32 // values that are computed, and in no tensor of the folder
	Scales []View    // if any, the tensor is MXFP4: one byte for each 16 bytes of Views

	// Vector says that the tensor stays in F32 whatever the type of the file: it is a vector, or a small matrix that
	// rounding hurts.
	Vector bool
}

// Change is what is done to every value.
type Change uint8

const (
	Same      Change = iota
	Plus1            // x + 1: norms that the model multiplies by 1 + w
	NegExp           // -exp(x): decays that are stored as logarithms
	PlusIndex        // x + i, of whole numbers: tokens that are stored by how far they are from the place where they stand
)

// output collects the parts of a tensor.
type output struct {
	name   string
	shape  []int // outermost dimension first; of one part, if there are several
	change Change
	values []float32
	scales []View
	parts  []part
}

// part is what one tensor of the folder contributes: the whole tensor, or that of one expert or head.
type part struct {
	expert int // or head; -1: all
	views  []View
}

// emit adds a tensor, or the part of one expert or head, with the shape of its first view or the one given.
func (c *converter) emit(name string, views []View, change Change, shape ...int) {
	if shape == nil {
		shape = views[0].shape()
	}
	expert := c.now.expert
	o := c.byName[name]
	if o == nil {
		o = &output{name: name, shape: shape, change: change}
		c.byName[name] = o
		c.out = append(c.out, o)
	} else if expert < 0 || !slices.Equal(o.shape, shape) || o.change != change {
		failf("becomes %s of shape %v, which there is already, of shape %v", name, shape, o.shape)
	}
	o.parts = append(o.parts, part{expert, views})
}

// constant adds a tensor of values that are computed.
func (c *converter) constant(name string, values []float32) {
	o := &output{name: name, shape: []int{len(values)}, values: values}
	c.byName[name] = o
	c.out = append(c.out, o)
}

// finish puts the parts together.
func (c *converter) finish() ([]Tensor, error) {
	if c.family.extra != nil {
		c.family.extra(c)
	}
	tensors := make([]Tensor, 0, len(c.out))
	for _, o := range c.out {
		t, err := o.tensor()
		for i := range t.Views {
			t.Views[i].Made = c.made[t.Views[i].Source.Name]
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", o.name, err)
		}
		tensors = append(tensors, t)
	}
	return tensors, nil
}

func (o *output) tensor() (Tensor, error) {
	t := Tensor{Name: o.name, Change: o.change, Values: o.values, Scales: o.scales}
	shape := o.shape
	if len(o.parts) > 0 && o.parts[0].expert >= 0 {
		slices.SortStableFunc(o.parts, func(a, b part) int { return a.expert - b.expert })
		shape = append([]int{len(o.parts)}, shape...)
		for i := range o.parts {
			if o.parts[i].expert != i {
				return t, fmt.Errorf("expert %d is missing or there twice: is the folder complete?", i)
			}
		}
	}
	count, real := int64(0), true
	for _, p := range o.parts {
		t.Views = append(t.Views, p.views...)
	}
	for _, v := range t.Views {
		count += v.count()
		real = real && (v.Source.Type.Real() || o.scales != nil || o.change == PlusIndex && v.Source.Type == element.I64)
	}
	want := int64(1)
	for _, n := range shape {
		want *= int64(n)
	}
	if o.scales != nil {
		want /= 2 // two values a byte
		if scaled := o.scales[0].count(); scaled*16 != count {
			return t, fmt.Errorf("has %d scales for %d blocks of 16 bytes", scaled, count/16)
		}
	}
	if o.scales != nil && len(t.Views) == 0 || len(o.shape) == 3 && t.packedOnly() && o.scales == nil {
		return t, errors.New("has scales without blocks, or blocks without scales: is the folder complete?")
	}
	if !real {
		return t, fmt.Errorf("is of type %s, want F32, F16 or BF16: get the model in one of those", t.Views[0].Source.Type)
	}
	if count != want && o.values == nil || want == 0 {
		return t, fmt.Errorf("shape would be %v, which takes %d values, and there are %d", shape, want, count)
	}
	if t.Vector = isVector(o.name, len(shape)) && o.change != PlusIndex; len(shape) == 0 {
		shape = []int{1}
	}
	t.Shape = slices.Clone(shape)
	slices.Reverse(t.Shape)
	if len(t.Shape) > 4 {
		return t, fmt.Errorf("has %d dimensions, want at most 4", len(t.Shape))
	}
	return t, nil
}

// packedOnly says whether what there is are bytes.
func (t *Tensor) packedOnly() bool { return len(t.Views) > 0 && t.Views[0].Source.Type == element.U8 }

// isVector says which tensors are never stored in less than F32.
func isVector(name string, dimensions int) bool {
	if dimensions <= 1 || !strings.HasSuffix(name, ".weight") {
		return true
	}
	stem := strings.TrimSuffix(name, ".weight")
	for _, end := range []string{"_norm", "ffn_gate_inp", "ffn_gate_inp_shexp", "ssm_conv1d", "shortconv.conv",
		"position_embd", "token_types", "patch_embd"} {
		if strings.HasSuffix(stem, end) {
			return true
		}
	}
	return false
}

// blocks is the packed tensor that this one is, whole and unchanged, if it can be written block by block; nil: it
// cannot.
func (t *Tensor) blocks() *packed.Tensor {
	if len(t.Views) != 1 || t.Change != Same || t.Views[0].Made == nil || t.Views[0].Made.Blocks == 0 {
		return nil
	}
	v := &t.Views[0]
	n, err := v.Made.Count()
	if outer, _ := v.Runs(); err != nil || len(outer) > 0 || v.Offset != 0 || v.Factors != nil || v.count() != n {
		return nil
	}
	return v.Made
}

// Own is the type of the tensor's values in the folder, F32 for vectors and for what has no type of its own in GGUF.
func (t *Tensor) Own() quant.Type {
	switch {
	case t.Scales != nil:
		return quant.MXFP4
	case t.Change == PlusIndex:
		return quant.I64
	case t.Vector || len(t.Views) == 0:
		return quant.F32
	case t.blocks() != nil:
		return t.blocks().Blocks
	}
	own, ok := t.Views[0].Source.Type.Quant()
	if !ok {
		return quant.F32
	}
	for _, v := range t.Views {
		if other, _ := v.Source.Type.Quant(); other != own {
			return quant.F32
		}
	}
	return own
}
