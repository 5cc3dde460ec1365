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

// Names of the programs' inputs and outputs. Deep and a number name what is added to the text's rows after a layer;
// Ones and a width an input that is 1 everywhere, from which programs make constants.
const (
	Patches   = "patches"
	First     = "first"     // ones in the row of the class, zeros in all others
	Positions = "positions" // of every patch, made of the learned ones
	Rows      = "rows"
	Deep      = "deep."
	Ones      = "ones."
)

// Tower is how a model sees.
type Tower struct {
	Kind  string // clip.projector_type
	Patch int    // a patch's side, in pixels
	Merge int    // patches at a side of what becomes one row of text
	Image int    // the side of all pictures, in pixels; 0: any multiple of Patch·Merge
	Tiles bool   // a picture is as many squares of Image pixels, one below another, which do not see each other
	Width int    // of the rows of text
	Deeps int    // so many more rows of text are added after as many layers
	Both  bool   // in the text, rows of a picture see each other
	Asks  int    // so many rows of text ask all patches, whatever the picture's size; 0: rows are made of some each
	Break string // a tensor that stands in the text after each line of a picture's rows but the last; empty: none

	Patches, Rows *ir.Program
	Windowed      []bool // by segment of Patches: a row sees its window alone

	placing
}

// placing is how patches lie, and what is made of them before they are computed.
type placing struct {
	class    bool // a row in front of the patches stands for the whole picture,
	behind   bool // or behind them
	first    int  // number of the first line and column
	window   int  // rows of text at a window's side; 0: there are no windows
	learned  learned
	grid     int  // learned positions at a side, or along one axis
	inner    bool // of patches that are joined, values lie feature by feature, not patch by patch
	centered bool // values from 0 to 1 become values from −1 to 1
}

// learned is how a patch's position is made of the learned ones.
type learned uint8

const (
	byNumber learned = iota // the program adds them
	linear                  // between the four nearest; the outer patches have the outer positions
	cubic                   // by the sixteen nearest; the outer patches lie half a patch inside
	byAxis                  // that of the column and that of the line, of two tables
	byPart                  // that which lies as far from the first one as the patch does from its first one
)

// Tensor is a tensor of the file as the programs want it.
type Tensor struct {
	ir.Tensor
	From  int     // index into the file's tensors
	Turn  bool    // the file has its columns as rows
	Value float32 // of a number (IsNumber), which programs hold as a constant
}

// IsNumber says whether a file's tensor is a number that a program holds as a constant, a limit of what a matrix takes
// or gives: Record wants its Value.
func IsNumber(t *ir.Tensor) bool {
	return len(t.Shape) == 1 && t.Shape[0] == 1 &&
		slices.ContainsFunc(limits, func(end string) bool { return strings.HasSuffix(t.Name, end) })
}

// limits are the ends of the names of what limits a matrix.
var limits = []string{".input_min", ".input_max", ".output_min", ".output_max"}

// Tensors lists a file's tensors as the programs want them: a patch's values are one dimension, whatever they are in
// the file.
func Tensors(m *meta.Map, file []ir.Tensor) []Tensor {
	kind, all := kindOf(m), make([]Tensor, len(file))
	for i, t := range file {
		t.Shape = slices.Clone(t.Shape)
		if (strings.HasPrefix(t.Name, patchMatrix) || t.Name == mergeMatrix) && len(t.Shape) == 4 {
			t.Shape = []int{t.Shape[0] * t.Shape[1] * t.Shape[2], t.Shape[3]}
		}
		for n := len(t.Shape) - 1; n > 0 && t.Shape[n] == 1 && !strings.HasPrefix(t.Name, "v.blk"); n-- {
			t.Shape = t.Shape[:n] // a class, or positions, in front of whose dimensions stood one more
		}
		if t.Name == patchMatrix+".weight.1" {
			t.Name = secondMatrix + ".weight"
		}
		all[i] = Tensor{Tensor: t, From: i}
		if t.Name == inputMatrix && kind == "gemma3" && len(t.Shape) == 2 {
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
	mergeMatrix  = "mm.patch_merger.weight"
	positions    = "v.position_embd"
)

// PositionTable is the tensor that Positions are made of.
const PositionTable = positions + ".weight"

// kind is how towers of one kind are recorded.
type kind struct {
	name   string
	record func(r *outline)
}

func kinds() []kind {
	return []kind{
		{"mlp", llava}, {"gemma3", gemma3}, {"gemma4v", gemma4}, {"qwen2vl_merger", qwen2}, {"qwen2.5vl_merger", qwen25},
		{"qwen3vl_merger", qwen3}, {"glm4v", glm4v}, {"pixtral", pixtral}, {"internvl", internVL},
		{"idefics3", idefics3}, {"llama4", llama4}, {"resampler", minicpm},
	}
}

// Kinds lists the values of clip.projector_type that Record knows.
func Kinds() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// kindOf is a file's kind, wherever it says so; empty: nowhere.
func kindOf(m *meta.Map) string {
	name, err := m.String("clip.projector_type")
	if err != nil {
		name, _ = m.String("clip.vision.projector_type")
	}
	return name
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
	name := kindOf(m)
	if name == "" {
		_, err := m.String("clip.projector_type")
		return nil, err
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
	var err error
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
