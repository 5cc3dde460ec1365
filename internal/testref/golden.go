package testref

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Answer is a recorded answer of llama.cpp to a prompt, always with the likeliest token.
type Answer struct {
	Name    string
	Prompt  []int32 `json:"prompt_tokens"`
	Tokens  []int32
	Margins []float64 // of each token's logit to that of the next best
	// Exact holds the same margins in exact arithmetic, cpu/ref's, given the same tokens; negative if another token
	// is better. It is nil for models whose activations are not rounded.
	Exact []float64 `json:"-"`
}

// Margins from which the recorder, and the oracle, are sure of a token.
const (
	sureRecorded = 0.15
	sureExact    = 0.35
)

// ExactFile is the path of the margins of Answer.Exact, by model and answer, from the module's root.
const ExactFile = "internal/testref/testdata/exact.json"

// Answers returns the recorded answers of a model.
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

// Sure reports whether an engine must agree on token i that rounds activations as llama.cpp does on a processor (256
// at once for K-quants).
func (a *Answer) Sure(i int) bool { return a.Margins[i] >= sureRecorded }

// SureIfExact reports whether an engine with finer rounding must agree on token i: both the recorder and exact
// arithmetic are sure of it. See docs/adr/0033.
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
