package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestArchitecturesConvert: whatever runs can be made of a folder, but for families that came as files alone.
// docs/architectures.md says which.
func TestArchitecturesConvert(t *testing.T) {
	const filesAlone = "2026-11-26" // since then
	names := convert.Architectures()
	for _, name := range arch.Names() {
		if arch.Since(name) < filesAlone {
			require.Contains(t, names, name)
		}
	}
	for _, name := range names {
		if !arch.Guesses(name) { // such a file is of no model, but guesses for one
			require.Contains(t, arch.Names(), name)
		}
	}
}

// TestFolderIsItsFile: a folder and the file that convert makes of it give the same tokens; most is used in place.
func TestFolderIsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "draft.gguf")
	o := sluice("", "convert", draftFolder(t), "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	ask := []string{"run", "--temp", "0", "-n", "40", "Tell me a short story about a fox."}
	want := sluice("", append(ask, "-m", path)...)
	require.Equal(t, exitDone, want.code, want.stderr)
	require.NotEmpty(t, want.stdout)
	for _, how := range [][]string{nil, {"--no-repack"}, {"--ram", "4M"}} {
		got := sluice("", append(append(ask, "-m", draftFolder(t)), how...)...)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Equal(t, want.stdout, got.stdout, "%v", how)
	}
	f, err := namedmodel.OpenPath(draftFolder(t))
	require.NoError(t, err)
	defer f.Close()
	last := f.Part(f.Parts() - 1)
	require.Empty(t, last.Path)
	require.Less(t, last.Size, int64(20<<10), "matrices lie in the file")
}

// mixtralFolder writes a small mixture of experts of random weights, in two shards: heads are turned, experts stacked,
// norms widened.
func mixtralFolder(t *testing.T) string {
	t.Helper()
	const width, feed, experts, vocab = 64, 96, 2, 8192
	dir := filepath.Join(t.TempDir(), "mixtral")
	require.NoError(t, os.Mkdir(dir, 0o755))
	shapes := map[string][]int{
		"model.embed_tokens.weight": {vocab, width}, "model.norm.weight": {width}, "lm_head.weight": {vocab, width},
	}
	layer := "model.layers.0."
	for name, shape := range map[string][]int{
		"self_attn.q_proj": {width, width}, "self_attn.k_proj": {width / 2, width}, "self_attn.v_proj": {width / 2, width},
		"self_attn.o_proj": {width, width}, "input_layernorm": {width}, "post_attention_layernorm": {width},
		"block_sparse_moe.gate": {experts, width},
	} {
		shapes[layer+name+".weight"] = shape
	}
	for e := range experts {
		for name, shape := range map[string][]int{"w1": {feed, width}, "w2": {width, feed}, "w3": {feed, width}} {
			shapes[fmt.Sprintf("%sblock_sparse_moe.experts.%d.%s.weight", layer, e, name)] = shape
		}
	}
	var names []string
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	index := map[string]string{}
	half := len(names) / 2
	for i, part := range [][]string{names[:half], names[half:]} {
		file := fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)
		writeSafetensors(t, filepath.Join(dir, file), part, shapes)
		for _, name := range part {
			index[name] = file
		}
	}
	text, err := json.Marshal(map[string]any{"weight_map": index})
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"model.safetensors.index.json": text,
		"config.json": []byte(`{"architectures": ["MixtralForCausalLM"], "hidden_size": 64, "intermediate_size": 96,
			"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "num_local_experts": 2,
			"num_experts_per_tok": 1, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": 8192,
			"max_position_embeddings": 512, "tie_word_embeddings": false}`),
		"tokenizer.json":        read(t, filepath.Join(draftFolder(t), "tokenizer.json")),
		"tokenizer_config.json": read(t, filepath.Join(draftFolder(t), "tokenizer_config.json")),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	return dir
}

// writeSafetensors writes tensors of random values in BF16.
func writeSafetensors(t *testing.T, path string, names []string, shapes map[string][]int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(len(names))))
	header, data := map[string]any{}, []byte(nil)
	for _, name := range names {
		begin, n := len(data), 1
		for _, d := range shapes[name] {
			n *= d
		}
		for range n {
			data = binary.LittleEndian.AppendUint16(data, quant.F32ToBF16(float32(random.NormFloat64())*0.2))
		}
		header[name] = map[string]any{"dtype": "BF16", "shape": shapes[name], "data_offsets": []int{begin, len(data)}}
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	all := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	require.NoError(t, os.WriteFile(path, append(append(all, text...), data...), 0o644))
}

// TestFolderInMemory: what lies in another order is made in memory, and is what the file has.
func TestFolderInMemory(t *testing.T) {
	dir := mixtralFolder(t)
	path := filepath.Join(t.TempDir(), "m.gguf")
	o := sluice("", "convert", dir, "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	file, err := gguf.Open(path)
	require.NoError(t, err)
	defer file.Close()
	folder, err := namedmodel.OpenPath(dir)
	require.NoError(t, err)
	defer folder.Close()
	require.Len(t, folder.Tensors, len(file.Tensors))
	inMemory := 0
	for i := range file.Tensors {
		want := &file.Tensors[i]
		got, ok := folder.Tensor(want.Name)
		require.True(t, ok, want.Name)
		require.Equal(t, want.Type, got.Type, want.Name)
		require.Equal(t, want.Shape, got.Shape, want.Name)
		require.True(t, string(file.Bytes(want)) == string(folder.Bytes(got)), want.Name)
		if got.Part == folder.Parts()-1 {
			inMemory++
		}
	}
	require.Equal(t, 9, inMemory, "three norms, the router, queries, keys and three stacks of experts")
	run := func(m string) outcome { return sluice("", "run", "-m", m, "--temp", "0", "-n", "12", "fox") }
	want, got := run(path), run(dir)
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, want.stdout, got.stdout)
}
