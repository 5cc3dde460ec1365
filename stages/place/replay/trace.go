package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/predict"
)

// Trace is what a replay needs of a token trace.
type Trace struct {
	Sizes place.Sizes
	Steps []Step
	Drawn int // tokens that sequences got
	Rows  int
}

// Step is what the rows of one step chose: by layer, each expert once, ascending.
type Step struct {
	Rows     int
	Chosen   [][]int32
	Foreseen *Foreseen // nil: the tokens of its rows are not known, or there are too many rows
}

// Foreseen is what the guesses of a step are made from, and learned from.
type Foreseen struct {
	Tokens  []int32     // of the rows
	ByRow   [][]int32   // by layer: [rows][used], -1 where there are fewer
	Margins [2][][]int8 // early and late, by layer: [rows][experts]; nil: there are none
}

// Load reads what a replay needs from a trace. Steps whose experts were not all recorded are left out; of a trace
// that was cut off, what there is is taken; of several models, the first one.
func Load(r *tokentrace.Reader) (*Trace, error) {
	t := &Trace{Sizes: place.Sizes{Vectors: r.Model.Vectors, Dense: r.Model.Dense}}
	for _, l := range r.Model.Layers {
		t.Sizes.Layers = append(t.Sizes.Layers, place.Experts(l))
	}
	first := r.Model.Number
	for {
		event, err := r.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return t.complete()
		case err != nil:
			return nil, err
		}
		if r.Model.Number != first {
			continue // of another model
		}
		switch e := event.(type) {
		case *tokentrace.Step:
			s := Step{Chosen: make([][]int32, len(t.Sizes.Layers))}
			for _, span := range e.Spans {
				s.Rows += span.Rows
			}
			if n := len(e.Tokens); n > 0 && n == s.Rows && n <= predict.MaxRows {
				s.Foreseen = newForeseen(e.Tokens, len(t.Sizes.Layers))
			}
			t.Steps = append(t.Steps, s)
		case *tokentrace.Foreseen:
			t.foreseen(e)
		case *tokentrace.Chosen:
			if len(t.Steps) == 0 {
				return nil, errors.New("the trace has experts before its first step: the file is damaged")
			}
			experts := slices.Clone(e.Experts)
			slices.Sort(experts)
			experts = slices.Compact(experts)
			if len(experts) > 0 && experts[0] < 0 {
				experts = experts[1:]
			}
			last := &t.Steps[len(t.Steps)-1]
			last.Chosen[e.Layer] = experts
			if last.Foreseen != nil {
				last.Foreseen.ByRow[e.Layer] = e.Experts
			}
		case *tokentrace.Drawn:
			t.Drawn++
		}
	}
}

func newForeseen(tokens []int32, layers int) *Foreseen {
	f := &Foreseen{Tokens: tokens, ByRow: make([][]int32, layers)}
	for i := range f.Margins {
		f.Margins[i] = make([][]int8, layers)
	}
	return f
}

func (t *Trace) foreseen(e *tokentrace.Foreseen) {
	if len(t.Steps) == 0 || t.Steps[len(t.Steps)-1].Foreseen == nil {
		return
	}
	when := 0
	if e.Late {
		when = 1
	}
	t.Steps[len(t.Steps)-1].Foreseen.Margins[when][e.Layer] = e.Margins
}

// complete drops steps without all their experts.
func (t *Trace) complete() (*Trace, error) {
	whole := t.Steps[:0]
	for _, s := range t.Steps {
		if !slices.ContainsFunc(s.Chosen, func(c []int32) bool { return len(c) == 0 }) {
			whole = append(whole, s)
			t.Rows += s.Rows
		}
	}
	if dropped := len(t.Steps) - len(whole); len(whole) == 0 {
		return nil, fmt.Errorf("the trace has no step with all its experts (%d without): there is nothing to replay", dropped)
	}
	t.Steps = whole
	return t, nil
}
