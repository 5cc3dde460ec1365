package backendtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/testref"
)

// Golden runs the recorded prompts and answers of a model through m, fed with the recorded tokens: the most likely
// token is the recorded one wherever a right engine has to be sure of it: (*testref.Answer).Sure, or SureIfExact. No
// names means all prompts.
//
// The answers are llama.cpp's. With K-quants it rounds activations to 8 bits, and rounding is chaotic: two engines
// whose sums differ in the last bit round independently after a few layers. On the embedded model both the exact
// oracle and a device with int8 activations are 0.2 (root mean square) away from its margins.
func Golden(t *testing.T, d backend.Device, m *Model, model string, sure func(*testref.Answer, int) bool,
	names ...string) {
	ran := 0
	eachAnswer(t, d, m, model, names, func(t *testing.T, a *testref.Answer, logits func(i int) []float32) {
		ran++
		for i, want := range a.Tokens {
			row := logits(i)
			if got := argmax(row); got != want && sure(a, i) {
				t.Errorf("token %d: %d (%v), want %d (%v), recorded with margin %v",
					i, got, row[got], want, row[want], a.Margins[i])
			}
		}
	})
	require.GreaterOrEqual(t, ran, max(len(names), 1), "prompts named %v", names)
}

// Margins are by how much a device's logits prefer each recorded token to all others, by prompt.
func Margins(t *testing.T, d backend.Device, m *Model, model string, names ...string) map[string][]float64 {
	all := map[string][]float64{}
	eachAnswer(t, d, m, model, names, func(t *testing.T, a *testref.Answer, logits func(i int) []float32) {
		for i, want := range a.Tokens {
			row := slices.Clone(logits(i))
			own := row[want]
			row[want] = row[(want+1)%int32(len(row))]
			all[a.Name] = append(all[a.Name], float64(own)-float64(slices.Max(row)))
		}
	})
	return all
}

// eachAnswer runs recorded answers, fed with their own tokens. logits returns the row that token i is chosen by.
func eachAnswer(t *testing.T, d backend.Device, m *Model, model string, names []string,
	do func(t *testing.T, a *testref.Answer, logits func(i int) []float32)) {
	const chunk = 32
	answers := testref.Answers(t, model)
	longest := 0
	for _, a := range answers {
		longest = max(longest, len(a.Prompt)+len(a.Tokens))
	}
	blocks := table(longest, 0)
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32,
		Blocks: Blocks(m.Program, len(blocks)), MaxRows: chunk, MaxWanted: chunk}})
	for _, a := range answers {
		if len(names) > 0 && !slices.Contains(names, a.Name) {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			fed := append(slices.Clone(a.Prompt), a.Tokens[:len(a.Tokens)-1]...)
			logits := l.sequence(t, fed, blocks, chunk)
			do(t, &a, func(i int) []float32 { return logits[(len(a.Prompt)-1+i)*m.Vocab:][:m.Vocab] })
		})
	}
}
