package ftype

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// open reads metadata and tensors of a file.
func open(t *testing.T, path string) (*gguf.File, []Tensor) {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	var tensors []Tensor
	for i := range f.Tensors {
		x := &f.Tensors[i]
		tensors = append(tensors, Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape})
	}
	return f, tensors
}

// TestGoldenTypes compares with what llama.cpp made of a real model.
func TestGoldenTypes(t *testing.T) {
	dir := testref.Dir(t)
	text, err := os.ReadFile(filepath.Join(dir, "golden", "quantize.json"))
	require.NoError(t, err)
	var golden struct {
		Types map[string]struct{ Tensors map[string][3]any }
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	f, tensors := open(t, filepath.Join(dir, "models", "draft-bf16.gguf"))
	require.NotEmpty(t, golden.Types)
	for name, want := range golden.Types {
		m, ok := Find(name)
		require.True(t, ok, name)
		types, err := m.Types(&f.Meta, tensors, Options{})
		require.NoError(t, err)
		require.Len(t, want.Tensors, len(tensors))
		for i, x := range tensors {
			require.Equal(t, want.Tensors[x.Name][0], types[i].String(), "%s: %s", name, x.Name)
		}
	}
}

func TestEveryMixHasAName(t *testing.T) {
	numbers := map[uint32]bool{}
	for _, name := range Names() {
		m, ok := Find(name)
		require.True(t, ok)
		require.Equal(t, name, m.Name)
		require.False(t, numbers[m.FileType], name)
		require.True(t, m.Base.Known())
		numbers[m.FileType] = true
	}
	m, ok := Find("q4_k")
	require.True(t, ok)
	require.Equal(t, "Q4_K_M", m.Name)
	_, ok = Find("Q4")
	require.False(t, ok)
}

var tiny = []Tensor{
	{"token_embd.weight", quant.F16, []int{256, 8}},
	{"output.weight", quant.F16, []int{256, 8}},
	{"output_norm.weight", quant.F32, []int{256}},
	{"blk.0.attn_q.weight", quant.F16, []int{256, 8}},
	{"blk.0.attn_q.bias", quant.F32, []int{256, 8}},
	{"blk.0.ffn_gate_inp.weight", quant.F32, []int{256, 8}},
	{"blk.0.ffn_down.weight", quant.F16, []int{96, 8}},
	{"blk.0.ffn_up.weight", quant.F16, []int{80, 8}},
}

func TestOptions(t *testing.T) {
	m := new(meta.Map)
	m.Set("general.architecture", "llama")
	m.Set("llama.block_count", uint32(1))
	q8, f16 := quant.Q8_0, quant.F16
	for _, c := range []struct {
		name     string
		fileType string
		o        Options
		want     string
	}{
		{"none", "Q4_K_M", Options{}, "Q4_K Q6_K F32 Q4_K F32 F32 Q8_0 F16"},
		{"pure", "Q4_K_M", Options{Pure: true}, "Q4_K Q4_K F32 Q4_K F32 F32 Q5_0 F16"},
		{"output", "Q4_K_M", Options{Output: &q8}, "Q4_K Q8_0 F32 Q4_K F32 F32 Q8_0 F16"},
		{"output as it is", "Q4_K_M", Options{LeaveOutput: true}, "Q4_K F16 F32 Q4_K F32 F32 Q8_0 F16"},
		{"embeddings", "Q4_K_M", Options{Embed: &f16, Output: &q8}, "F16 Q8_0 F32 Q4_K F32 F32 Q8_0 F16"},
		{"override", "Q4_K_M", Options{Pure: true, Overrides: []Override{
			{regexp.MustCompile(`attn_[qk]\.`), quant.Q2_K},
			{regexp.MustCompile(`blk\.0|norm`), quant.IQ4_XS},
		}}, "Q4_K Q4_K F32 Q2_K F32 F32 IQ4_NL F16"},
		{"override of a float type", "F16", Options{Overrides: []Override{
			{regexp.MustCompile(`attn_q`), quant.Q8_0},
		}}, "F16 F16 F32 Q8_0 F32 F32 F16 F16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ft, ok := Find(c.fileType)
			require.True(t, ok)
			types, err := ft.Types(m, tiny, c.o)
			require.NoError(t, err)
			require.Equal(t, c.want, strings.Trim(fmt.Sprint(types), "[]"))
		})
	}
}

// A pattern that is misspelt, or that another one leaves nothing to, is no wish that was fulfilled.
func TestUselessOverride(t *testing.T) {
	m := new(meta.Map)
	m.Set("general.architecture", "llama")
	ft, _ := Find("Q4_K_M")
	q8 := quant.Q8_0
	for _, patterns := range [][]string{{"blk", "no_such"}, {"blk", "norm"}, {".", "ffn_down"}, {"blk", "output"}} {
		o := Options{Output: &q8}
		for _, p := range patterns {
			o.Overrides = append(o.Overrides, Override{regexp.MustCompile(p), quant.Q5_0})
		}
		_, err := ft.Types(m, tiny, o)
		require.EqualError(t, err, fmt.Sprintf("pattern %q: decides the type of no tensor: norms and other small ones "+
			"stay as they are, and the first pattern that matches a name counts", patterns[1]))
	}
}

// Without an output matrix of its own, a model's embeddings are treated as the output.
func TestTied(t *testing.T) {
	m := new(meta.Map)
	m.Set("general.architecture", "llama")
	q8 := quant.Q8_0
	ft, _ := Find("Q4_K_M")
	for want, o := range map[quant.Type]Options{quant.Q6_K: {LeaveOutput: true}, quant.Q8_0: {Output: &q8}} {
		types, err := ft.Types(m, tiny[:1], o)
		require.NoError(t, err)
		require.Equal(t, want, types[0])
	}
}

func TestBadMetadata(t *testing.T) {
	ft, _ := Find("Q4_K_M")
	m := new(meta.Map)
	_, err := ft.Types(m, tiny, Options{})
	require.EqualError(t, err, "key general.architecture: missing from the metadata: "+
		"the rules of a file type depend on it, so only a model's file can have one")
	m.Set("general.architecture", "llama")
	m.Set("llama.block_count", "seven")
	_, err = ft.Types(m, tiny, Options{})
	require.EqualError(t, err, "key llama.block_count: is of type string, want an integer")
}

func TestMeta(t *testing.T) {
	m := new(meta.Map)
	for _, key := range []string{"a", "general.file_type", "split.no", "split.count", "b"} {
		m.Set(key, uint32(1))
	}
	ft, _ := Find("Q5_K_S")
	got := ft.Meta(m)
	require.Equal(t, []string{"a", "b", "general.quantization_version", "general.file_type"}, got.Keys())
	n, err := got.Int("general.file_type")
	require.NoError(t, err)
	require.EqualValues(t, 16, n)
	require.Len(t, m.Keys(), 5, "the source stays as it is")
}

func TestOrder(t *testing.T) {
	names := []string{"blk.10.b", "blk.2.a", "token_embd", "blk.2.A", "blk.x.a", "output", "blk.10.a"}
	var got []string
	for _, i := range Order(names) {
		got = append(got, names[i])
	}
	require.Equal(t, []string{"blk.x.a", "output", "token_embd", "blk.2.A", "blk.2.a", "blk.10.a", "blk.10.b"}, got)
}

func TestNeedsImportance(t *testing.T) {
	small, _ := Find("Q2_K_S")
	usual, _ := Find("Q2_K")
	require.True(t, small.NeedsImportance("blk.0.ffn_up.weight", quant.Q2_K))
	require.False(t, usual.NeedsImportance("blk.0.ffn_up.weight", quant.Q2_K))
	require.True(t, usual.NeedsImportance("blk.0.ffn_up.weight", quant.IQ2_S))
	require.False(t, usual.NeedsImportance("output.weight", quant.IQ2_S))
}

// TestEveryFormatHasAFileType: a file's tensors can have any format that is written, but for those that llama.cpp has
// no number of a file type for.
func TestEveryFormatHasAFileType(t *testing.T) {
	unnumbered := []quant.Type{quant.NVFP4, quant.Q1_0, quant.Q2_0}
	for _, typ := range quant.All() {
		has := slices.ContainsFunc(fileTypes[:], func(f Type) bool { return f.Base == typ })
		require.Equal(t, quant.HasEncoder(typ) && !slices.Contains(unnumbered, typ), has,
			"%s: fileTypes, in stages/model/ftype/rules.go", typ)
	}
}
