package backendtest

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/testref"
)

// Loader reads a model file, edits its metadata if edit is not nil, and records and binds the program. It is a
// parameter because this package may reach neither file readers nor architectures.
type Loader func(t testing.TB, path string, edit func(*meta.Map)) *Model

// fixture is what the reference computed for a tiny model; the README of the fixtures describes the fields.
type fixture struct {
	Tokens    []int32
	Vocab     int `json:"n_vocab"`
	Tolerance float64
	Rounded   float64 `json:"llamacpp_rounded_median_abs_diff"` // of llama.cpp with rounded activations: the median position
	Greedy    struct{ Prompt, Tokens []int32 }
}

// variants lists the fixtures: each is a model file, or one with other metadata and logits.
var variants = []struct {
	name, file, logits string
	edit               func(*meta.Map)
	blocks             bool // matrices in blocks: devices may round activations to 8 bits
}{
	{name: "llama"}, {name: "llama3rope"}, {name: "llama_k256"}, {name: "mistral"}, {name: "qwen2"},
	{name: "qwen3"}, {name: "olmo2"}, {name: "phi3"}, {name: "smollm3"}, {name: "gemma2"}, {name: "gemma3"}, {name: "gemma4"}, {name: "gemma4moe"},
	{name: "granite"}, {name: "starcoder2_k256"}, {name: "qwen2moe"}, {name: "qwen3moe"}, {name: "mixtral"},
	{name: "granitemoe"}, {name: "olmoe"}, {name: "gptoss", blocks: true}, {name: "commandr"}, {name: "ernie45"},
	{name: "seedoss"}, {name: "hunyuan"}, {name: "glm4moe"}, {name: "llama4"},
	{name: "deepseek2"}, {name: "deepseek3"},
	{name: "lfm2"}, {name: "mamba2"}, {name: "qwen3next"}, {name: "qwen35"}, {name: "qwen35moe"},
	{name: "llama4.chunk24", file: "llama4", edit: func(m *meta.Map) { m.Set("llama4.attention.sliding_window", uint32(24)) }},
	{name: "phi3.nowindow", file: "phi3", edit: func(m *meta.Map) { m.Set("phi3.attention.sliding_window", uint32(0)) }},
}

// Fixtures compares logits with those of transformers, within factor times each fixture's tolerance: of the prompt
// whole, in chunks and token by token; and compares 32 greedy tokens. A fast device (factor above 1) that rounds
// activations may differ as much as llama.cpp does: half of the positions must be within twice its median.
func Fixtures(t *testing.T, d backend.Device, open Loader, factor float64) {
	dir := filepath.Join(testref.Dir(t), "fixtures")
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			file := v.file
			if file == "" {
				file = v.name
			}
			f := readFixture(t, filepath.Join(dir, file+".json"))
			m := open(t, filepath.Join(dir, file+".gguf"), v.edit)
			want := readFloats(t, filepath.Join(dir, v.name+".logits.f32"))
			require.Len(t, want, len(f.Tokens)*f.Vocab)
			if v.blocks && factor > 1 {
				require.Less(t, f.median(f.whole(t, d, m), want), 2*f.Rounded)
				return
			}
			f.near(t, f.whole(t, d, m), want, factor*f.Tolerance)
			if v.edit == nil {
				f.greedy(t, d, m)
			}
		})
	}
}

// whole returns the logits of all positions, and checks that any chunks give the same bits.
func (f *fixture) whole(t *testing.T, d backend.Device, m *Model) []float32 {
	n := len(f.Tokens)
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 4),
		MaxRows: n, MaxWanted: n}})
	whole := l.sequence(t, f.Tokens, table(n, 0), n)
	sameBits(t, "in chunks", f.Vocab, l.sequence(t, f.Tokens, table(n, 1), 5, 1, 7), whole)
	sameBits(t, "token by token", f.Vocab, l.sequence(t, f.Tokens, table(n, 2), 1), whole)
	return whole
}

// Logits returns the logits of all positions.
func Logits(t *testing.T, d backend.Device, m *Model, tokens []int32) []float32 {
	n := len(tokens)
	blocks := table(n, 0)
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32,
		Blocks: Blocks(m.Program, len(blocks)), MaxRows: n, MaxWanted: n}})
	return l.sequence(t, tokens, blocks, n)
}

func (f *fixture) near(t *testing.T, got, want []float32, tolerance float64) {
	worst, at := distance(got, want)
	t.Logf("largest difference %.3g of %.3g", worst, tolerance)
	require.LessOrEqualf(t, worst, tolerance, "position %d, token %d: %v, want %v",
		at/f.Vocab, at%f.Vocab, got[at], want[at])
}

// median is the largest difference at the median position.
func (f *fixture) median(got, want []float32) float64 {
	var each []float64
	for ; len(want) > 0; got, want = got[f.Vocab:], want[f.Vocab:] {
		worst, _ := distance(got[:f.Vocab], want[:f.Vocab])
		each = append(each, worst)
	}
	slices.Sort(each)
	return each[len(each)/2]
}

// greedy continues the prompt with the likeliest tokens, as an engine does: a device that computes prompts apart gets a
// step of a prompt, then steps of an answer. The reference's margins are far above the tolerance.
func (f *fixture) greedy(t *testing.T, d backend.Device, m *Model) {
	n := len(f.Greedy.Prompt)
	l := load(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(m.Program, 1),
		MaxRows: n, MaxWanted: n}})
	l.Steps()[0].Prompt = true
	logits := l.sequence(t, f.Greedy.Prompt, table(64, 0), n)
	l.Steps()[0].Prompt = false
	var got []int32
	for pos := n; ; pos++ {
		got = append(got, argmax(logits[len(logits)-f.Vocab:]))
		if len(got) == len(f.Greedy.Tokens) {
			break
		}
		logits = l.step(t, rows{got[len(got)-1:], pos, table(64, 0)})
	}
	require.Equal(t, f.Greedy.Tokens, got)
}

func readFixture(t testing.TB, path string) *fixture {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	f := new(fixture)
	require.NoError(t, json.Unmarshal(text, f), path)
	require.NotEmpty(t, f.Tokens, path)
	return f
}

func readFloats(t testing.TB, path string) []float32 {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func argmax(x []float32) int32 {
	best := 0
	for i := range x {
		if x[i] > x[best] {
			best = i
		}
	}
	return int32(best)
}
