package testref

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Answer is what llama.cpp answered a prompt with, always with the likeliest token.
type Answer struct {
	Name    string
	Prompt  []int32 `json:"prompt_tokens"`
	Tokens  []int32
	Margins []float64 // of each token's logit to that of the next best
	// Exact are the same margins in exact arithmetic, cpu/ref's, fed the same tokens; negative where another token is
	// better. Nil for models whose activations nobody rounds.
	Exact []float64 `json:"-"`
}

// By how much the recorder, and the oracle, have to prefer a token to be sure of it.
const (
	sureRecorded = 0.15
	sureExact    = 0.35
)

// ExactFile holds the margins of Answer.Exact, by model and answer, from the module's root.
const ExactFile = "internal/testref/testdata/exact.json"

// Answers are the recorded ones of a model.
func Answers(t testing.TB, model string) []Answer {
	t.Helper()
	var recorded struct{ Greedy []Answer }
	readJSON(t, filepath.Join(Dir(t), "golden", model+".json"), &recorded)
	exact := map[string]map[string][]float64{}
	readJSON(t, filepath.Join(root(t), ExactFile), &exact)
	for i := range recorded.Greedy {
		a := &recorded.Greedy[i]
		a.Exact = exact[model][a.Name]
	}
	return recorded.Greedy
}

// Sure says whether an engine that rounds activations as llama.cpp does on a processor, 256 at once for K-quants, has
// to answer a token.
func (a *Answer) Sure(i int) bool { return a.Margins[i] >= sureRecorded }

// SureIfExact says whether one has to that rounds them less, and so is nearer to exact arithmetic than the recorder: of
// what both are sure of. See docs/adr/0033.
func (a *Answer) SureIfExact(i int) bool {
	return a.Sure(i) && (a.Exact == nil || a.Exact[i] >= sureExact)
}

func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
