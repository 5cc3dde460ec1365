package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/place"
)

// Trace is what a replay needs of a recorded one.
type Trace struct {
	Sizes place.Sizes
	Steps []Step
	Drawn int // tokens that sequences got
	Rows  int
}

// Step is what the rows of one step chose: by layer, each expert once, ascending.
type Step struct {
	Rows   int
	Chosen [][]int32
}

// Load takes what a replay needs out of a trace. Steps whose experts were not all recorded are left out; a trace that
// was cut off is taken as far as it goes.
func Load(r *tokentrace.Reader) (*Trace, error) {
	t := &Trace{Sizes: place.Sizes{Vectors: r.Model.Vectors, Dense: r.Model.Dense}}
	for _, l := range r.Model.Layers {
		t.Sizes.Layers = append(t.Sizes.Layers, place.Experts(l))
	}
	for {
		event, err := r.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return t.complete()
		case err != nil:
			return nil, err
		}
		switch e := event.(type) {
		case *tokentrace.Step:
			s := Step{Chosen: make([][]int32, len(t.Sizes.Layers))}
			for _, span := range e.Spans {
				s.Rows += span.Rows
			}
			t.Steps = append(t.Steps, s)
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
			t.Steps[len(t.Steps)-1].Chosen[e.Layer] = experts
		case *tokentrace.Drawn:
			t.Drawn++
		}
	}
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
