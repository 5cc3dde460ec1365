//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/ask"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/internal/testref"
)

// Perplexities of the held-out texts are within half a percent of those that llama.cpp measured.
func TestPerplexity(t *testing.T) {
	if testing.Short() {
		t.Skip("reads two texts with two models: make ci runs it")
	}
	dir := testref.Dir(t)
	for _, model := range []string{"mini-Q4_K_M", "draft-bf16"} {
		var golden struct {
			Perplexity map[string]struct {
				PPL            float64
				Chunks, Scored int
			}
		}
		data, err := os.ReadFile(filepath.Join(dir, "golden", model+".json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &golden))
		require.Len(t, golden.Perplexity, 2)
		for text, want := range golden.Perplexity {
			t.Run(model+"/"+text, func(t *testing.T) {
				o := sluice("", "perplexity", "--kv", "f32", "-m", filepath.Join(dir, "models", model+".gguf"),
					"-f", filepath.Join(dir, "models", "heldout-"+text+".txt"), "-c", "512")
				require.Zero(t, o.code, o.stderr)
				var got measure.Scores
				require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
				require.InEpsilon(t, want.PPL, got.PPL, 0.005)
				require.Equal(t, want.Chunks, got.Chunks)
				require.Equal(t, want.Scored, got.Scored)
			})
		}
	}
}

// TestPerplexityOfBytes: a cache of bytes costs less than a thousandth. Of a model in bfloat16: where activations are
// rounded to bytes, the perplexity of so short a text moves more than that by chance.
func TestPerplexityOfBytes(t *testing.T) {
	models := filepath.Join(testref.Dir(t), "models")
	var ppl [2]float64
	for i, kv := range []string{"f16", "q8"} {
		o := sluice("", "perplexity", "--kv", kv, "-m", filepath.Join(models, "draft-bf16.gguf"),
			"-f", filepath.Join(models, "heldout-en.txt"), "-c", "512", "--chunks", "12")
		require.Zero(t, o.code, o.stderr)
		var got measure.Scores
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
		ppl[i] = got.PPL
	}
	require.NotEqual(t, ppl[0], ppl[1])
	require.InEpsilon(t, ppl[0], ppl[1], 1e-3)
}

// TestPerplexityAgainst: both runs have the perplexities that they have alone, and a cache differs in nothing from
// itself.
func TestPerplexityAgainst(t *testing.T) {
	models := filepath.Join(testref.Dir(t), "models")
	compared := func(kv ...string) (got measure.Compared) {
		o := sluice("", append([]string{"perplexity", "-m", filepath.Join(models, "draft-bf16.gguf"),
			"-f", filepath.Join(models, "heldout-en.txt"), "-c", "128", "--chunks", "6", "--json"}, kv...)...)
		require.Zero(t, o.code, o.stderr)
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
		return got
	}
	alone, exact := compared("--kv", "q8"), compared("--kv", "f16")
	both, same := compared("--kv", "q8", "--against", "f16"), compared("--kv", "f16", "--against", "f16")
	require.InEpsilon(t, alone.PPL, both.PPL, 1e-12)
	require.InEpsilon(t, exact.PPL, both.Against, 1e-12)
	require.InEpsilon(t, both.PPL/both.Against, both.Ratio, 1e-9)
	require.Equal(t, []any{"q8", "f16", 6, alone.Scored}, []any{both.KV, both.Other, both.Chunks, both.Scored})
	require.InDelta(t, 9, both.BitsK, 1e-9)
	require.InDelta(t, 8.25, both.BitsV, 1e-9)
	require.Positive(t, both.RatioErr)
	require.Positive(t, both.KLMedian)
	require.Greater(t, both.KLP999, both.KLMedian)
	require.Less(t, both.KLP999, 0.05)
	require.Greater(t, both.SameTop, 0.95)
	require.Equal(t, []float64{1, 0, 1}, []float64{same.Ratio, same.RatioErr, same.SameTop})
	require.Less(t, same.KLP999, 1e-9)
}

// What the quantiser makes predicts text at least as well as what llama.cpp makes: a fast type of each kind.
func TestQuantizedPerplexity(t *testing.T) {
	f, golden := draft(t)
	text := filepath.Join(testref.Dir(t), "models", "heldout-go.txt")
	for _, name := range []string{"Q4_0", "Q3_K_S"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new.gguf")
			o := sluice("", "quantize", f.Name, path, name)
			require.Zero(t, o.code, o.stderr)
			o = sluice("", "perplexity", "-m", path, "-f", text, "-c", "512", "--chunks", "40")
			require.Zero(t, o.code, o.stderr)
			var got measure.Scores
			require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
			require.LessOrEqual(t, got.PPL, 1.005*golden[name].PPL)
		})
	}
}

// The embedded model finds a number that is mentioned once in a long text.
func TestNeedle(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 17,000 tokens: make ci runs it")
	}
	prose, err := os.ReadFile(filepath.Join(testref.Dir(t), "models", "heldout-en.txt"))
	require.NoError(t, err)
	sentences := strings.Split(strings.Join(strings.Fields(string(prose)), " "), ". ")
	for tokens, name := range map[int]string{1000: "Harbor", 4000: "Maria", 12000: "Alice"} {
		t.Run(fmt.Sprint(tokens), func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, uint64(tokens)))
			code := 1000 + random.IntN(9000)
			o := sluice(haystack(sentences, random, tokens, name, code), "run", "--json")
			require.Zero(t, o.code, o.stderr)
			var got ask.Answer
			require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
			require.InDelta(t, tokens, got.PromptTokens, float64(tokens)/4)
			require.Contains(t, got.Text, fmt.Sprint(code))
		})
	}
}

// haystack is prose of about so many tokens with one sentence about a code in it, and the question at the end.
func haystack(sentences []string, random *rand.Rand, tokens int, name string, code int) string {
	const lettersOfToken = 3.5
	var hay []string
	from := random.IntN(100)
	for size := 0; float64(size) < lettersOfToken*float64(tokens); from++ {
		hay = append(hay, sentences[from]+".")
		size += len(sentences[from]) + 2
	}
	at := 1 + random.IntN(len(hay)-1)
	hay[at] += fmt.Sprintf(" The secret code of %s is %d.", name, code)
	return strings.Join(hay, " ") + fmt.Sprintf("\n\nWhat is the secret code of %s?", name)
}

// A person sees how far it is, and what has come of it; nothing of that is left.
func TestPerplexityProgress(t *testing.T) {
	e := envtest.NewEnv(strings.Repeat("The capital of France is Paris. ", 20), "perplexity", "--json", "-c", "16", "--chunks", "3", "-f", "-")
	e.IsTerminal = func(stream any) bool { return stream == e.Stderr }
	now := e.Now()
	e.Now = func() time.Time { now = now.Add(time.Second); return now }
	require.Zero(t, run(e), "%v", e.Stderr)
	said := fmt.Sprint(e.Stderr)
	require.Regexp(t, `\rppl \d[\d.]+ 33%`, said)
	require.Regexp(t, `\rppl \d[\d.]+ 66%`, said)
	require.True(t, strings.HasSuffix(said, "\r"))
	require.Contains(t, fmt.Sprint(e.Stdout), `"chunks":3`)
}
