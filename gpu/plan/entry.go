package plan

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Entry is the layout of the memory in which the host describes a step to kernels, by offset in bytes. All steps of a
// ring have the same layout.
// Wide: each is where one kind of data lies.
type Entry struct {
	Bytes       int    // of the block; block tables are apart
	Left        [2]int // of uint32, by i: rows in use from MaxColumns·i on; of all rows, of wanted rows
	IDs, Wanted int    // of int32
	Draws       int    // of DrawBytes, by wanted row
	Rows        []int  // of kernel.Row, by cache class
	Ends        []int  // of kernel.Row, by cache class: for each row, the last row of its text, if LooksAhead
	Spans       []int  // of kernel.Span, by cache class, of states
	Angles      []int  // of float32, by rotation
	Tempers     []int  // by temper: a factor for each row
	Numbers     []int  // by numbering: one for each row
	Texts       int    // of kernel.Text, by span
	Lists       int    // of uint32, by row: the first kernel.Applied of its list, if Adapts
	Applied     int    // of kernel.Applied: an end, then a list a span
	Exchanges   int    // of one uint32: the number of the step's first exchange, if there are any

	Rotations  []Rotation
	Factors    []Temper
	Numberings []Numbering
	HasTexts   bool // some launch asks whose rows are whose: Texts are given
	Adapts     bool // the program takes adapters
	LooksAhead bool // some rows see those after them: Ends are given
}

// The result of a step begins with its status, a uint32; see kernel.Finite.
const (
	ResultStatus = 0
	ResultDrawn  = 16 // of uint32, by wanted row
)

// ResultLogits is the offset of the rows of logits.
func (p *Plan) ResultLogits() int { return ResultDrawn + 4*p.Capacity(true) }

// Rotation is one way to rotate, whose angles the host makes for every row.
type Rotation struct {
	Args    *ir.RoPEArgs
	Divisor ir.Ref
}

// Temper is the parameters of one or several ir.Temper, which scale rows by a factor that grows with their position.
// The host computes it for each row.
type Temper struct {
	Factor      float32
	Every, From int
}

// Of is the factor of a row at a position.
func (t Temper) Of(position int) float32 {
	far := math.Floor(float64(position+t.From) / float64(t.Every))
	return float32(1 + float64(t.Factor)*math.Log1p(far))
}

// Numbering says which rows of a table an ir.Position or an ir.TokenType adds: the host tells their numbers.
type Numbering struct {
	ByType bool // by the part of its text that a row is in; else by its position
	Sep    int32
	Last   int // the table's last row
}

// Fill numbers the rows of a text from a position on.
func (x Numbering) Fill(numbers []uint32, tokens []int32, position int) {
	part := 0
	for i := range numbers {
		if !x.ByType {
			numbers[i] = uint32(position + i)
			continue
		}
		numbers[i] = uint32(part)
		if tokens[i] == x.Sep {
			part = min(part+1, x.Last)
		}
	}
}

// entryOf collects what launches read of the entry while they are planned.
type entryOf struct {
	rotations  []Rotation
	tempers    []Temper
	numberings []Numbering
	texts      bool
	adapts     bool
	looksAhead bool
}

// angles is the number of a rotation.
func (e *entryOf) angles(a *ir.RoPEArgs, divisor ir.Ref) int {
	for i, r := range e.rotations {
		if r.Divisor == divisor && sameRotation(r.Args, a) {
			return i
		}
	}
	e.rotations = append(e.rotations, Rotation{a, divisor})
	return len(e.rotations) - 1
}

// number is the index of x among others. It is appended if it is not there.
func number[T comparable](all *[]T, x T) int {
	i := slices.Index(*all, x)
	if i < 0 {
		i = len(*all)
		*all = append(*all, x)
	}
	return i
}

// lay computes the offsets.
func (e *entryOf) lay(p *ir.Program, of *Plan) (x Entry) {
	rows, wanted := of.Capacity(false), of.Capacity(true)
	x.Rotations, x.Factors, x.Numberings, x.LooksAhead = e.rotations, e.tempers, e.numberings, e.looksAhead
	x.HasTexts, x.Adapts = e.texts, e.adapts
	take := func(bytes int) (at int) {
		at = x.Bytes
		x.Bytes += (bytes + 15) &^ 15
		return at
	}
	x.Left[0], x.Left[1] = take(4*(rows/kernel.MaxColumns+1)), take(4*(wanted/kernel.MaxColumns+1))
	x.IDs, x.Wanted, x.Draws = take(4*rows), take(4*wanted), take(kernel.DrawBytes*wanted)
	for _, c := range p.Classes {
		ofRows, ofEnds, ofSpans := 8*rows, 0, 0
		if c.State {
			ofRows, ofSpans = 0, kernel.SpanBytes*rows
		}
		if x.LooksAhead {
			ofEnds = ofRows
		}
		x.Rows, x.Ends = append(x.Rows, take(ofRows)), append(x.Ends, take(ofEnds))
		x.Spans = append(x.Spans, take(ofSpans))
	}
	for _, r := range x.Rotations {
		x.Angles = append(x.Angles, take(4*rows*r.Args.Dims))
	}
	for range x.Factors {
		x.Tempers = append(x.Tempers, take(4*rows))
	}
	for range x.Numberings {
		x.Numbers = append(x.Numbers, take(4*rows))
	}
	if of.target.Team != nil {
		x.Exchanges = take(4)
	}
	if x.HasTexts {
		x.Texts = take(kernel.TextBytes * (rows + 1))
	}
	if x.Adapts {
		x.Lists, x.Applied = take(4*rows), take(kernel.AppliedBytes*(1+rows*(ir.MostApplied+1)))
	}
	return x
}
