package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/internal/quant"
)

// eagleFolder writes a folder of EAGLE-3 for the embedded model as such are published: without a tokenizer, without the
// embeddings, and with logits of 2000 of its tokens.
func eagleFolder(t *testing.T) string {
	const width, ffn, knows = 512, 64, 2000
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"architectures": ["LlamaForCausalLM"],
		"model_type": "llama", "hidden_size": 512, "intermediate_size": 64, "num_attention_heads": 4,
		"num_key_value_heads": 2, "head_dim": 128, "num_hidden_layers": 1, "rms_norm_eps": 1e-6, "vocab_size": 8192,
		"max_position_embeddings": 2048, "rope_theta": 1000000, "draft_vocab_size": 2000, "dtype": "float16"}`), 0o600))
	header, data := map[string]any{}, new(bytes.Buffer)
	random := rand.New(rand.NewPCG(1, 2))
	add := func(name, typ string, fill func(), shape ...int) {
		from := data.Len()
		fill()
		header[name] = map[string]any{"dtype": typ, "shape": shape, "data_offsets": []int{from, data.Len()}}
	}
	for name, shape := range map[string][]int{"fc": {width, 3 * width}, "lm_head": {knows, width}, "norm": {width},
		"midlayer.hidden_norm": {width}, "midlayer.input_layernorm": {width}, "midlayer.post_attention_layernorm": {width},
		"midlayer.self_attn.q_proj": {width, 2 * width}, "midlayer.self_attn.k_proj": {width / 2, 2 * width},
		"midlayer.self_attn.v_proj": {width / 2, 2 * width}, "midlayer.self_attn.o_proj": {width, width},
		"midlayer.mlp.gate_proj": {ffn, width}, "midlayer.mlp.up_proj": {ffn, width},
		"midlayer.mlp.down_proj": {width, ffn}} {
		add(name+".weight", "F16", func() {
			n := shape[0]
			if len(shape) == 2 {
				n *= shape[1]
			}
			for range n {
				bits := quant.F32ToF16(float32(random.NormFloat64() * 0.03))
				_ = binary.Write(data, binary.LittleEndian, bits)
			}
		}, shape...)
	}
	add("d2t", "I64", func() {
		for i := range int64(knows) {
			_ = binary.Write(data, binary.LittleEndian, 3*i) // token 4i
		}
	}, knows)
	add("t2d", "BOOL", func() { data.Write(make([]byte, 8192)) }, 8192)
	text, err := json.Marshal(header)
	require.NoError(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	file = append(append(file, text...), data.Bytes()...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), file, 0o600))
	return dir
}

// TestEagle: a head of EAGLE-3 changes no answer, as the folder that is published or as a file made of it, in fewer
// bits too; it is counted by the plan, and is refused alone.
func TestEagle(t *testing.T) {
	folder := eagleFolder(t)
	path := filepath.Join(folder, "eagle.gguf")
	o := sluice("", "convert", folder, "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	small := filepath.Join(t.TempDir(), "small.gguf")
	o = sluice("", "quantize", path, small, "Q8_0")
	require.Equal(t, exitDone, o.code, o.stderr)

	ask := []string{"run", "What is the capital of France?", "--temp", "0", "--ctx", "512"}
	without := sluice("", append(ask, "--speculate", "off")...)
	require.Equal(t, exitDone, without.code, without.stderr)
	for _, draft := range []string{folder, path, small} {
		with := sluice("", append(ask, "--draft", draft, "--speculate", "draft")...)
		require.Equal(t, exitDone, with.code, with.stderr)
		require.Equal(t, without.stdout, with.stdout)
	}
	o = plan(t, "--draft", folder)
	require.Contains(t, o.stdout, "The head that guesses tokens takes as well: weights ")
	var p measure.PlanJSON
	require.NoError(t, json.Unmarshal([]byte(plan(t, "--draft", path, "--json").stdout), &p))
	require.Equal(t, "draft of Sluice Mini Dense", p.Draft.Name)

	o = sluice("", "run", "hello", "-m", path)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "only guesses tokens for another model")
	o = sluice("", "run", "hello", "-m", filepath.Join("..", "..", "actors", "testdata", "qwen3.gguf"), "--draft", path)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "eagle")
}
