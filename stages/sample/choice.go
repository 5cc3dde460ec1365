package sample

import (
	"fmt"
	"math"
	"slices"
)

// Choice is how a token was chosen: what each stage left, in the order in which they were asked. Stages that are off
// are not there.
type Choice struct {
	Position int     `json:"position"` // tokens before it
	Stages   []Stage `json:"stages"`
	ID       int32   `json:"id"`
}

// Stage is what one stage left. The top are likeliest first; shares are their probabilities among what is left.
type Stage struct {
	Of     StageKind   `json:"stage"`
	Value  float64     `json:"value"` // of the parameter; of a temperature that moves, as it was
	Left   int         `json:"left"`  // tokens that may still be chosen
	Top    []Candidate `json:"top"`
	Chosen *Candidate  `json:"chosen"` // the token that was chosen in the end; nil: the stage has removed it
}

// Candidate is a token with its logit and its probability.
type Candidate struct {
	ID    int32   `json:"id"`
	Logit float32 `json:"logit"`
	Share float64 `json:"share"`
}

// StageKind is what a stage of choosing does.
type StageKind uint8

// The stages, in their order. Of Logits and Penalties the value is 0, of Form the number of allowed tokens.
const (
	Logits    StageKind = iota // the model's own
	Penalties                  // biases, bans, penalties, DRY
	Form                       // the mask of a grammar, or of the end of thoughts
	TopNSigma
	TopK
	TypicalP
	TopP
	MinP
	XTC
	Mirostat
	Temperature
	stages
)

// String implements fmt.Stringer. The names are those of requests, where they have one.
func (k StageKind) String() string {
	if k >= stages {
		return fmt.Sprintf("stage %d", uint8(k))
	}
	return [stages]string{"logits", "penalties", "form", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "xtc",
		"mirostat", "temperature"}[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k StageKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// mostTop is how many of a stage's likeliest tokens are told.
const mostTop = 20

// Explain is SampleAmong, and says how the token was chosen.
func (s *Sampler) Explain(allowed []uint64, logits []float32, p *Params, history []int32, st State) (
	Result, *Choice, error) {
	r, err := s.SampleAmong(allowed, logits, p, history, st)
	if err != nil {
		return r, nil, err
	}
	s.told = &Choice{Position: len(history), ID: r.ID}
	defer func() { s.told = nil }()
	s.tellRow(Logits, 0, logits)
	again, err := s.SampleAmong(allowed, logits, p, history, st) // nothing that it depends on has changed
	if err == nil && again.ID != r.ID {
		err = fmt.Errorf("token %d was drawn, and then %d: this is a bug", r.ID, again.ID)
	}
	return r, s.told, err
}

// tellRow tells of a stage that leaves a row of logits, if somebody wants to know.
func (s *Sampler) tellRow(k StageKind, value float64, row []float32) {
	if s.told == nil {
		return
	}
	var c candidates
	c.fill(row, math.Inf(-1), 0)
	s.told.add(k, value, c.list, 1)
}

// tell tells of a stage that leaves candidates, if it is on and somebody wants to know. A temperature above 0 bends
// their shares.
func (s *Sampler) tell(k StageKind, on bool, value, temp float64) {
	if s.told != nil && on {
		s.told.add(k, value, s.candidates.list, temp)
	}
}

func (c *Choice) add(k StageKind, value float64, list []candidate, temp float64) {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, better)
	stage, sum := Stage{Of: k, Value: value, Left: len(sorted), Top: []Candidate{}}, 0.0
	weight := func(x candidate) float64 {
		if temp <= 0 {
			return 1 // the likeliest alone is left
		}
		return exp((float64(x.logit) - float64(sorted[0].logit)) / temp)
	}
	for _, x := range sorted {
		sum += weight(x)
	}
	for i, x := range sorted {
		of := Candidate{x.id, x.logit, weight(x) / sum}
		if i < mostTop {
			stage.Top = append(stage.Top, of)
		}
		if x.id == c.ID {
			stage.Chosen = &of
		}
	}
	c.Stages = append(c.Stages, stage)
}
