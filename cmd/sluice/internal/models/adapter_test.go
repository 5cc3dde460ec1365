package models

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// adapterBase opens the base model of a reference with a vocabulary that stands in for the one that it has not.
func adapterBase(t *testing.T, dir string) *gguf.File {
	t.Helper()
	base := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(dir, "base", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(base, name), data, 0o644))
	}
	vocabulary := `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}`
	require.NoError(t, os.WriteFile(filepath.Join(base, "tokenizer.json"), []byte(vocabulary), 0o644))
	f, err := namedmodel.OpenFolder(base, convert.Options{Pre: "gpt-2"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// adapterReference is what was computed for a base model with adapters.
type adapterReference struct {
	dir    string
	logits *checkpoint.Folder
	greedy map[string]json.RawMessage
	prompt []int32
	ids    []int32
}

func openAdapterReference(t *testing.T, name string) *adapterReference {
	t.Helper()
	r := &adapterReference{dir: filepath.Join(testref.Dir(t), "multimodal", name)}
	var err error
	r.logits, err = checkpoint.Open(r.dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.logits.Close()) })
	text, err := os.ReadFile(filepath.Join(r.dir, "greedy.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r.greedy))
	require.NoError(t, json.Unmarshal(r.greedy["prompt"], &r.prompt))
	require.NoError(t, r.logits.View("ids", func(data []byte) error {
		for ; len(data) > 0; data = data[8:] {
			r.ids = append(r.ids, int32(binary.LittleEndian.Uint64(data)))
		}
		return nil
	}))
	return r
}

// applied binds the adapters of a case, such as a*0.7+b*0.4.
func (r *adapterReference) applied(t *testing.T, m *backendtest.Model, f *gguf.File, of string) (all []ir.Applied) {
	t.Helper()
	for term := range strings.SplitSeq(of, "+") {
		name, factor, _ := strings.Cut(term, "*")
		if name == "base" {
			continue
		}
		scale := 1.0
		if factor != "" {
			var err error
			scale, err = strconv.ParseFloat(factor, 32)
			require.NoError(t, err)
		}
		a, file, err := OpenAdapter(filepath.Join(r.dir, "adapter_"+name), &f.Meta)
		require.NoError(t, err)
		bound, err := a.Bind(m.Program)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		t.Cleanup(func() { require.NoError(t, bound.Close()) })
		all = append(all, ir.Applied{Adapter: &bound.Adapter, Scale: float32(scale)})
	}
	return all
}

// TestAdapterReferences: the logits of every recorded adapter, sum and weighted sum are PEFT's, and so are the tokens
// that follow, on the oracle, on the processor and on a GPU: one whose driver computes in plain Go, or the first one of
// Vulkan.
func TestAdapterReferences(t *testing.T) {
	fast, err := cpu.New(1, "")
	require.NoError(t, err)
	defer fast.Close()
	var card backend.Device
	if os.Getenv("SLUICE_TEST_DEVICE") == "vulkan" {
		card, err = vulkan.Open(0, vulkan.Options{})
	} else {
		card, err = exec.New(func() (driver.Device, error) {
			return null.Open(null.Options{Fused: true, Integers: true, Free: 4 << 30}), nil
		})
	}
	require.NoError(t, err)
	defer card.Close()
	for _, name := range []string{"lora_llama", "lora_qwen3"} {
		r := openAdapterReference(t, name)
		f := adapterBase(t, r.dir)
		m := archtest.Adapted(t, f)
		for of := range r.greedy {
			if of == "prompt" {
				continue
			}
			adapters := r.applied(t, m, f, of)
			for device, d := range map[string]backend.Device{"oracle": ref.New(), "processor": fast, "card": card} {
				t.Run(name+"/"+of+"/"+device, func(t *testing.T) {
					near := 2e-4
					got := backendtest.Adapted(t, d, m, adapters, r.ids)
					require.NoError(t, r.logits.View(of, func(data []byte) error {
						require.Len(t, data, 4*len(got))
						for i, x := range got {
							want := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
							require.InDelta(t, want, x, near, "position %d, token %d", i/m.Vocab, i%m.Vocab)
						}
						return nil
					}))
					r.follows(t, d, m, adapters, of)
				})
			}
		}
	}
}

// follows checks the likeliest tokens after the prompt, one after the other.
func (r *adapterReference) follows(t *testing.T, d backend.Device, m *backendtest.Model, adapters []ir.Applied,
	of string) {
	t.Helper()
	var want struct{ Tokens []int32 }
	require.NoError(t, json.Unmarshal(r.greedy[of], &want))
	text := append(append([]int32(nil), r.prompt...), want.Tokens...)
	logits := backendtest.Adapted(t, d, m, adapters, text[:len(text)-1])
	for i, token := range want.Tokens {
		row := logits[(len(r.prompt)-1+i)*m.Vocab:][:m.Vocab]
		best := 0
		for j, x := range row {
			if x > row[best] {
				best = j
			}
		}
		require.Equal(t, token, int32(best), "token %d", i)
	}
}

// TestAdapterOfAnotherModel: an adapter that does not fit is refused with tensor, expected and found shape.
func TestAdapterOfAnotherModel(t *testing.T) {
	dir := filepath.Join(testref.Dir(t), "multimodal", "lora_llama")
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	_, _, err = OpenAdapter(filepath.Join(dir, "base"), &f.Meta)
	require.ErrorContains(t, err, "is a folder without adapter_config.json")
	a, file, err := OpenAdapter(filepath.Join(dir, "adapter_a"), &f.Meta)
	require.NoError(t, err)
	defer file.Close()
	require.ErrorContains(t, AdapterFits(a, f), `self_attn.q_proj.lora_A.weight" is 4×64, want 4×`)
}
