// Package vision knows how models see: which programs make rows of a text's width from a picture, in what order the
// picture's patches are computed, and which of them see each other.
//
// A tower is two programs. The first has a row for each patch; the second joins neighbouring patches to the rows that
// stand in a text. Both are bound to an mmproj file as llama.cpp writes it: its keys begin with clip. A device computes
// them; how is actors/sight's business, and how a file becomes values is stages/picture's.
package vision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
)

// Picture is what a tower reads of one picture: the values of its three colours, as the model's processor has
// normalised them, colour by colour and line by line.
type Picture struct {
	Height, Width int
	Values        []float32 // [3][Height][Width]
}

// Names of the programs' inputs and outputs. Deep and a number name what is added to the text's rows after a layer.
const (
	Patches   = "patches"
	First     = "first"     // ones in the row of the class, zeros in all others
	Positions = "positions" // of every patch, interpolated between the learned ones
	Rows      = "rows"
	Deep      = "deep."
)

// Tower is how a model sees.
type Tower struct {
	Kind   string // clip.projector_type
	Mean   []float32
	Spread []float32 // what is subtracted from values from 0 to 1, and what they are divided by
	Patch  int       // a patch's side, in pixels
	Merge  int       // patches at a side of what becomes one row of text
	Image  int       // the side of all pictures, in pixels; 0: any multiple of Patch·Merge
	Width  int       // of the rows of text
	Deeps  int       // so many more rows of text are added after as many layers
	Both   bool      // in the text, rows of a picture see each other

	Patches, Rows *ir.Program
	Windowed      []bool // by segment of Patches: a row sees its window alone

	class  bool // a row in front of the patches stands for the whole picture
	window int  // rows of text at a window's side; 0: there are no windows
	grid   int  // learned positions at a side, between which others are interpolated; 0: they are added by number
}

// Tensor is a tensor of the file as the programs want it.
type Tensor struct {
	ir.Tensor
	From int  // index into the file's tensors
	Turn bool // the file has its columns as rows
}

// Tensors lists a file's tensors as the programs want them: a patch's values are one dimension, whatever they are in
// the file.
func Tensors(file []ir.Tensor) []Tensor {
	all := make([]Tensor, len(file))
	for i, t := range file {
		t.Shape = slices.Clone(t.Shape)
		if strings.HasPrefix(t.Name, patchMatrix) && len(t.Shape) == 4 {
			t.Shape = []int{t.Shape[0] * t.Shape[1] * t.Shape[2], t.Shape[3]}
		}
		if t.Name == patchMatrix+".weight.1" {
			t.Name = secondMatrix + ".weight"
		}
		all[i] = Tensor{Tensor: t, From: i}
		if t.Name == inputMatrix && len(t.Shape) == 2 {
			slices.Reverse(all[i].Shape)
			all[i].Turn = true
		}
	}
	return all
}

// Names of tensors that are not taken as they are.
const (
	patchMatrix  = "v.patch_embd"
	secondMatrix = "v.patch_embd.1" // of the second frame, which in a picture is the first one again
	inputMatrix  = "mm.input_projection.weight"
	positions    = "v.position_embd"
)

// PositionTable is the tensor that InterpolatedPositions reads.
const PositionTable = positions + ".weight"

// kind is how towers of one kind are recorded.
type kind struct {
	name   string
	record func(r *outline)
}

func kinds() []kind {
	return []kind{
		{"mlp", llava}, {"gemma3", gemma3}, {"qwen2.5vl_merger", qwen25}, {"qwen3vl_merger", qwen3},
	}
}

// Kinds lists the values of clip.projector_type that Record knows.
func Kinds() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// Is says whether a file's metadata are those of a tower.
func Is(m *meta.Map) bool {
	name, _ := m.String("general.architecture")
	return name == "clip"
}

// Record makes the programs of the tower that the metadata m describe. All faults of the metadata are reported at once.
// The shapes of the tensors are checked later, by Tower.Bind.
func Record(m *meta.Map, tensors []Tensor) (*Tower, error) {
	if !Is(m) {
		return nil, errors.New("general.architecture is not clip: want an mmproj file, which belongs to a model that sees")
	}
	name, err := m.String("clip.projector_type")
	if err != nil {
		if name, err = m.String("clip.vision.projector_type"); err != nil {
			return nil, err
		}
	}
	known := kinds()
	i := slices.IndexFunc(known, func(k kind) bool { return k.name == name })
	if i < 0 {
		return nil, fmt.Errorf("clip.projector_type: %.40q is not supported, want one of %s", name, strings.Join(Kinds(), ", "))
	}
	r := newOutline(m, tensors)
	r.Kind = name
	known[i].record(r)
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	if r.Patches, err = r.patches.Program(0); err == nil {
		r.Rows, err = r.rows.Program(0)
	}
	if err != nil {
		return nil, err
	}
	r.Width = r.rows.Width(r.last)
	return r.Tower, nil
}

// Bind finds the tower's weights among the tensors.
func (t *Tower) Bind(tensors []Tensor) (patches, rows *ir.Bound, err error) {
	list := make([]ir.Tensor, len(tensors))
	for i := range tensors {
		list[i] = tensors[i].Tensor
	}
	if patches, err = ir.Bind(t.Patches, list); err == nil {
		rows, err = ir.Bind(t.Rows, list)
	}
	return patches, rows, err
}
