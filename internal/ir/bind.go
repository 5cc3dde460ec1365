package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Tensor is what a file says about one tensor. Shape[0] is the contiguous dimension, as in GGUF.
type Tensor struct {
	Name  string
	Type  quant.Type
	Shape []int
}

// Bound is a program whose every weight was found in a file with the right shape.
type Bound struct {
	*Program
	Types   []quant.Type // by Ref
	Tensors []int        // by Ref: index into the file's tensor list
	Piece   int64        // about how many bytes a group of rows has: see On; 0: PieceBytes
}

// BindError lists all that keeps a program from running on a file's tensors, sorted by tensor name.
type BindError struct{ Faults []string }

// Error shows the first faults, one a line, and counts the others.
func (e *BindError) Error() string {
	const most = 40
	shown := e.Faults[:min(len(e.Faults), most)]
	text := fmt.Sprintf("the tensors do not fit the architecture (%d faults):\n  %s",
		len(e.Faults), strings.Join(shown, "\n  "))
	if rest := len(e.Faults) - len(shown); rest > 0 {
		text += fmt.Sprintf("\n  and %d more", rest)
	}
	return text
}

// Bind finds the weights of p among a file's tensors. Tensors that are missing, surplus, of a wrong shape or of an
// unknown type are all reported at once, as a *BindError.
func Bind(p *Program, tensors []Tensor) (*Bound, error) {
	b := binder{
		Bound:  Bound{Program: p, Types: make([]quant.Type, len(p.Weights)), Tensors: make([]int, len(p.Weights))},
		byName: make(map[string]int, len(tensors)),
		known:  make(map[string]bool, len(p.Weights)),
	}
	for i, t := range tensors {
		if _, ok := b.byName[t.Name]; ok {
			b.fault(t.Name, "is in the file twice")
		}
		b.byName[t.Name] = i
	}
	for r := range p.Weights {
		b.weight(Ref(r), tensors)
	}
	for _, t := range tensors {
		if !b.known[t.Name] && !p.ignores(t.Name) {
			b.fault(t.Name, "is surplus: %s has no use for it", p.Arch)
		}
	}
	if len(b.faults) > 0 {
		slices.Sort(b.faults)
		return nil, &BindError{slices.Compact(b.faults)}
	}
	return &b.Bound, nil
}

// ignores says whether a file may hold a tensor that the program does not use.
func (p *Program) ignores(name string) bool {
	return p.Part || slices.ContainsFunc(p.Ignore, func(s string) bool {
		return name == s || strings.HasSuffix(s, ".") && strings.HasPrefix(name, s)
	})
}

type binder struct {
	Bound
	byName map[string]int // index into the file's tensors
	known  map[string]bool
	faults []string
}

func (b *binder) fault(name, format string, args ...any) {
	const most = 80 // a file can make a name as long as it likes
	if len(name) > most {
		name = name[:most] + "…"
	}
	b.faults = append(b.faults, fmt.Sprintf("%q ", name)+fmt.Sprintf(format, args...))
}

func (b *binder) weight(r Ref, tensors []Tensor) {
	w := &b.Weights[r]
	b.known[w.Name] = true
	i, ok := b.byName[w.Name]
	if !ok {
		b.fault(w.Name, "is missing, want %s", dims(w.Shape()))
		return
	}
	t := &tensors[i]
	b.Types[r], b.Tensors[r] = t.Type, i
	if !w.matches(t.Shape) {
		b.fault(w.Name, "is %s, want %s", dims(t.Shape), dims(w.Shape()))
		return
	}
	row, err := t.Type.RowBytes(w.Cols)
	if err != nil {
		b.fault(w.Name, "has rows of %d values: %v", w.Cols, err)
		return
	}
	if row > 0 && w.Rows > math.MaxInt64/row {
		b.fault(w.Name, "is %s: more bytes than can be addressed", dims(t.Shape))
	}
}

// Size is the bytes of a weight, as in the file.
func (b *Bound) Size(r Ref) int64 {
	row, err := b.Types[r].RowBytes(b.Weights[r].Cols)
	if err != nil {
		panic(err) // Bind reported it
	}
	return int64(row) * int64(b.Weights[r].Rows)
}

// Shape is the weight's shape in a file: contiguous dimension first.
func (w *Weight) Shape() []int {
	switch {
	case w.Experts > 0:
		return []int{w.Cols, w.Rows / w.Experts, w.Experts}
	case w.Heads > 0:
		return []int{w.Cols, w.Rows / w.Heads, w.Heads}
	case w.Rows == 1 && w.Use == Vector:
		return []int{w.Cols}
	}
	return []int{w.Cols, w.Rows}
}

// matches compares w's shape with a file's. Dimensions of 1 do not count, of a matrix but for the first.
// Matrices of heads may be one above the other: their bytes are the same.
func (w *Weight) matches(shape []int) bool {
	from := 1
	if w.Use == Vector {
		from = 0
	}
	if w.Heads > 0 && slices.Equal(shape, []int{w.Cols, w.Rows}) {
		return true
	}
	return len(shape) > 0 && slices.Equal(spare(shape, from), spare(w.Shape(), from))
}

// spare leaves out dimensions of 1, from a dimension on.
func spare(shape []int, from int) []int {
	left := slices.Clone(shape[:from])
	for _, n := range shape[from:] {
		if n != 1 {
			left = append(left, n)
		}
	}
	return left
}

// dims shows a shape as 64×512.
func dims(shape []int) string {
	if len(shape) == 0 {
		return "a scalar"
	}
	var s strings.Builder
	for i, n := range shape {
		if i > 0 {
			s.WriteString("×")
		}
		s.WriteString(strconv.Itoa(n))
	}
	return s.String()
}
