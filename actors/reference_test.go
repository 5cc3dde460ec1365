package actors

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// kernelSets are the oracle, and the processor's best kernels. The others' bits are those of the best (law Twin), and
// TestFixtures of package cpu has them all. The race detector looks at the engine: for it one is enough.
func kernelSets() []string {
	all := kernels.Sets()
	best := all[len(all)-1].Name
	if slowed {
		return []string{best}
	}
	return []string{"ref", best}
}

// with puts another set of kernels in place of the best.
func with(t testing.TB, kernels string) func(*Config) {
	return func(c *Config) {
		require.NoError(t, c.Device.Close())
		c.Device = devicetest.Processor(t, kernels)
	}
}

// readJSON reads a reference file of the reference folder.
func readJSON[T any](t testing.TB, path ...string) (out T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{testref.Dir(t)}, path...)...))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func readFloats(t testing.TB, path ...string) []float32 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{testref.Dir(t)}, path...)...))
	require.NoError(t, err)
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// The logits of transformers, and its greedy tokens, through the whole tree and with every set of kernels. The fast
// sets may be off by five times the tolerance.
func TestFixtures(t *testing.T) {
	for _, name := range []string{"llama", "llama3rope", "llama_k256", "mistral", "qwen2", "qwen3", "olmo2", "phi3", "smollm3",
		"gemma2", "gemma3", "granite", "starcoder2_k256", "mamba2", "lfm2", "qwen3next", "qwen35", "qwen35moe"} {
		f := readJSON[struct {
			Tokens    []int32
			Tolerance float64
			Greedy    struct{ Prompt, Tokens []int32 }
		}](t, "fixtures", name+".json")
		want := readFloats(t, "fixtures", name+".logits.f32")
		for _, set := range kernelSets() {
			t.Run(name+"/"+set, func(t *testing.T) {
				e := startFixture(t, name, with(t, set))
				tolerance := f.Tolerance
				if set != "ref" {
					tolerance *= 5
				}
				got := score(t, e, f.Tokens)
				require.Equal(t, len(want), len(got))
				for i := range want {
					if d := math.Abs(float64(want[i]) - float64(got[i])); !(d <= tolerance) {
						t.Fatalf("logit %d is %v, want %v ± %v", i, got[i], want[i], tolerance)
					}
				}
				s := begin(t, e, plain(f.Greedy.Prompt, 32))
				require.Equal(t, f.Greedy.Tokens, collect(t, s).tokens)
			})
		}
	}
}

// What llama.cpp answered with the trained models: the likeliest token is its own wherever it was sure of it, and
// a free answer differs, if at all, first where it was not.
func TestGolden(t *testing.T) {
	sure := (*testref.Answer).Sure
	if devicetest.OnGPU() {
		sure = (*testref.Answer).SureIfExact
	}
	models := []string{"mini-Q4_K_M", "draft-bf16", "moe-Q4_K_M"}
	if slowed { // what the race detector sees of an engine is the same for all
		models = models[:1]
	}
	for _, model := range models {
		f, err := gguf.Open(filepath.Join(testref.Dir(t), "models", model+".gguf"))
		require.NoError(t, err)
		e := startFile(t, f, nil)
		for _, c := range testref.Answers(t, model) {
			t.Run(model+"/"+c.Name, func(t *testing.T) {
				logits := score(t, e, append(append([]int32{}, c.Prompt...), c.Tokens[:len(c.Tokens)-1]...))
				vocab := e.Info.Vocab
				for i, id := range c.Tokens {
					row := logits[(len(c.Prompt)-1+i)*vocab:][:vocab]
					if best := argmax(row); best != id && sure(&c, i) {
						t.Errorf("token %d is %d, want %d, of which the reference is sure by %v", i, best, id, c.Margins[i])
					}
				}
				free := collect(t, begin(t, e, Request{Tokens: c.Prompt, MaxTokens: len(c.Tokens), Sampling: greedy()}))
				for i, id := range c.Tokens {
					if i >= len(free.tokens) || free.tokens[i] != id {
						require.False(t, sure(&c, i), "token %d of the free answer differs", i)
						break
					}
				}
			})
		}
	}
}

func argmax(row []float32) int32 {
	best := 0
	for i, x := range row {
		if x > row[best] {
			best = i
		}
	}
	return int32(best)
}

// Law Twin: every set of kernels gives the same bits, through the whole tree.
func TestTwin(t *testing.T) {
	for _, model := range []string{"llama_k256", "gemma2", "phi3", "starcoder2_k256", "mamba2", "lfm2", "qwen35"} {
		var want []float32
		for _, s := range kernels.Sets() {
			e := startFixture(t, model, with(t, s.Name))
			got := score(t, e, readJSON[struct{ Tokens []int32 }](t, "fixtures", model+".json").Tokens)
			if want == nil {
				want = got
			}
			requireSameBits(t, want, got, model+" with "+s.Name)
		}
	}
}
