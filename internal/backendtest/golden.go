package backendtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/testref"
)

type golden struct {
	Greedy []struct {
		Name    string
		Prompt  []int32 `json:"prompt_tokens"`
		Tokens  []int32
		Margins []float64
	}
}

// Golden runs the recorded prompts and answers of a model through m, fed with the recorded tokens: the most likely
// token is the recorded one wherever that was chosen by the given margin of logits or more. No names means all prompts.
//
// The answers are llama.cpp's. With K-quants it rounds activations to 8 bits, and rounding is chaotic: two engines
// whose sums differ in the last bit round independently after a few layers. On the embedded model both the exact
// oracle and a device with int8 activations are 0.2 (root mean square) away from its margins.
func Golden(t *testing.T, d backend.Device, m *Model, model string, margin float64, names ...string) {
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "golden", model+".json"))
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(text, &g))
	const chunk = 32
	longest := 0
	for _, p := range g.Greedy {
		longest = max(longest, len(p.Prompt)+len(p.Tokens))
	}
	blocks := table(longest, 0)
	l := load(t, d, m, backend.Config{
		KV: backend.KVF32, Blocks: Blocks(m.Program, len(blocks)), MaxRows: chunk, MaxWanted: chunk,
	})
	ran := 0
	for _, p := range g.Greedy {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		ran++
		t.Run(p.Name, func(t *testing.T) {
			fed := append(slices.Clone(p.Prompt), p.Tokens[:len(p.Tokens)-1]...)
			logits := l.sequence(t, fed, blocks, chunk)
			for i, want := range p.Tokens {
				row := logits[(len(p.Prompt)-1+i)*m.Vocab:][:m.Vocab]
				if got := argmax(row); got != want && p.Margins[i] >= margin {
					t.Errorf("token %d: %d (%v), want %d (%v), recorded with margin %v",
						i, got, row[got], want, row[want], p.Margins[i])
				}
			}
		})
	}
	require.GreaterOrEqual(t, ran, max(len(names), 1), "prompts named %v", names)
}
