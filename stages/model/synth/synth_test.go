package synth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// published is how many parameters the models have by their weights' index files.
var published = map[string]int64{
	"smollm2-135m":     134515008,
	"smollm2-1.7b":     1711376384,
	"llama-3.2-1b":     1235814400,
	"llama-3.1-8b":     8030261248,
	"llama-3.1-70b":    70553706496,
	"mistral-7b":       7248023552,
	"qwen2.5-7b":       7615616512,
	"qwen3-0.6b":       596049920,
	"qwen3-8b":         8190735360,
	"qwen3-30b-a3b":    30532122624,
	"qwen3-235b-a22b":  235093634560,
	"gemma-2-9b":       9241705984,
	"gpt-oss-20b":      20914757184,
	"gpt-oss-120b":     116829156672,
	"phi-4":            14659507200,
	"smollm3-3b":       3075098624,
	"olmo-2-7b":        7298617344,
	"starcoder2-3b":    3030371328,
	"deepseek-v2-lite": 15706484224,
	"deepseek-v2":      235741434880,
	"deepseek-v3":      671026419200,
	"bert-large":       335141888 - (1024+1)*1024, // without its pooler
	"phi-3.5-moe":      41873153344,
	"flan-t5-small":    76961152,
	"flan-t5-base":     247577856,
	"flan-t5-xl":       2849757184,
}

func tensors(t *testing.T, c *synth.Config) []synth.Tensor {
	t.Helper()
	p, err := arch.Record(c.Meta("test"), c.Has, arch.Options{})
	require.NoError(t, err)
	ear, err := arch.RecordEar(c.Meta("test"), c.Has)
	require.NoError(t, err)
	if ear != nil {
		return c.Tensors(p, ear.Program)
	}
	return c.Tensors(p)
}

// TestShapes: every shape makes a program, and has as many parameters as its model.
func TestShapes(t *testing.T) {
	known := map[string]bool{}
	for _, s := range synth.Shapes() {
		require.False(t, known[s.Name], "%s is listed twice", s.Name)
		known[s.Name] = true
		c, err := synth.Find(s.Name)
		require.NoError(t, err, s.Name)
		var n int64
		for _, x := range tensors(t, c) {
			if x.Name == "rope_freqs.weight" { // not a parameter where it comes from
				continue
			}
			size := int64(1)
			for _, d := range x.Shape {
				size *= int64(d)
			}
			n += size
		}
		if want, ok := published[s.Name]; ok {
			require.Equal(t, want, n, s.Name)
		}
	}
	for name := range published {
		require.True(t, known[name], name)
	}
	_, err := synth.Find("gpt-5")
	require.EqualError(t, err, `shape "gpt-5" is not known: sluice synth --list shows those that are`)
}

// TestInterleaved: Llama 4's shapes have as many parameters as their configurations say, layer by layer, and Scout's
// divisors of RoPE are one or the other, with nothing between.
func TestInterleaved(t *testing.T) {
	const width, expert, dense, vocab = 5120, 8192, 16384, 202048
	const layer, mixtureLayer = 2*width + 2*width*width + 2*width*1024, 3 * width * expert
	for name, want := range map[string]int64{
		"llama-4-scout":    2*vocab*width + width + 48*(layer+16*width+17*mixtureLayer),
		"llama-4-maverick": 2*vocab*width + width + 48*layer + 24*(128*width+129*mixtureLayer) + 24*3*width*dense,
	} {
		c, err := synth.Find(name)
		require.NoError(t, err)
		n := int64(0)
		for _, x := range tensors(t, c) {
			size := int64(1)
			for _, d := range x.Shape {
				size *= int64(d)
			}
			if x.Name != "rope_freqs.weight" {
				n += size
				continue
			}
			require.Len(t, x.Values, 64)
			require.Equal(t, float32(1), x.Values[0])
			require.Equal(t, float32(16), x.Values[63])
			require.NotContains(t, x.Values, float32(8))
			at := slices.Index(x.Values, 16)
			require.Equal(t, slices.Repeat([]float32{1}, at), x.Values[:at])
			require.Equal(t, slices.Repeat([]float32{16}, 64-at), x.Values[at:])
		}
		require.Equal(t, want, n, name)
	}
	parsed, err := synth.Parse([]byte(`{"model_type": "llama4", "text_config": {"model_type": "llama4_text", "head_dim": 128,
		"hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 2,
		"num_attention_heads": 40, "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 128,
		"num_experts_per_tok": 1, "vocab_size": 202048, "max_position_embeddings": 1048576, "rms_norm_eps": 1e-05,
		"rope_theta": 500000.0, "rope_scaling": null, "tie_word_embeddings": false}}`))
	require.NoError(t, err)
	want, err := synth.Find("llama-4-maverick")
	require.NoError(t, err)
	require.Equal(t, want.Meta("x"), parsed.Meta("x"))
}

// TestDivisors compares the divisors of Llama 3.1's RoPE with transformers' rule, which goes by wavelengths.
func TestDivisors(t *testing.T) {
	c, err := synth.Find("llama-3.1-8b")
	require.NoError(t, err)
	for _, x := range tensors(t, c) {
		if x.Name != "rope_freqs.weight" {
			continue
		}
		between := 0
		for i, got := range x.Values {
			wave, want := 2*math.Pi*math.Pow(500000, float64(i)/64), 1.0
			switch {
			case wave > 8192:
				want = 8
			case wave >= 8192.0/4:
				smooth := (8192/wave - 1) / (4 - 1)
				want = 1 / ((1-smooth)/8 + smooth)
				between++
			}
			require.InDelta(t, want, got, 1e-5, "pair %d", i)
		}
		require.Equal(t, 6, between)
		return
	}
	require.Fail(t, "there are no divisors")
}

// TestTiny: every shape can be made tiny, and keeps each kind of tensor that it has: only numbers of layers differ.
func TestTiny(t *testing.T) {
	kinds := func(c *synth.Config) (names []string, parameters int64) {
		for _, x := range tensors(t, c) {
			name := x.Name
			if part, rest, layer := strings.Cut(name, "blk."); layer {
				_, name, _ = strings.Cut(rest, ".")
				name = part + name
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			size := int64(1)
			for _, d := range x.Shape {
				size *= int64(d)
			}
			parameters += size
		}
		slices.Sort(names)
		return names, parameters
	}
	for _, s := range synth.Shapes() {
		c, err := synth.Find(s.Name)
		require.NoError(t, err)
		want, _ := kinds(c)
		c.Tiny()
		c.Vocab = c.LeastVocab(8192)
		got, n := kinds(c)
		require.Equal(t, want, got, s.Name)
		require.Less(t, n, int64(5e6), s.Name)
	}
}

const llama31 = `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "bos_token_id": 128000,
	"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072,
	"model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
	"rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
	"original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
	"tie_word_embeddings": false, "vocab_size": 128256, "sliding_window": null}`

// TestParse: a published file means the same as the row of the table.
func TestParse(t *testing.T) {
	c, err := synth.Parse([]byte(llama31))
	require.NoError(t, err)
	want, err := synth.Find("llama-3.1-8b")
	require.NoError(t, err)
	require.Equal(t, want.Meta("x"), c.Meta("x"))
	require.Equal(t, tensors(t, want), tensors(t, c))

	seeing, err := synth.Parse([]byte(`{"model_type": "gemma3", "vision_config": {}, "text_config": ` + llama31 + `}`))
	require.NoError(t, err)
	require.Equal(t, c, seeing)

	_, err = synth.Parse([]byte(`{"model_type": "mamba"}`))
	require.ErrorContains(t, err, `model_type: "mamba" is not known, want one of bert, deepseek_v2,`)
	_, err = synth.Parse([]byte(`{"model_type": "qwen3", "hidden_size": -1, "num_attention_heads": 8}`))
	require.EqualError(t, err, `num_hidden_layers: is 0, want 1 to 1024
hidden_size: is -1, want 1 to 131072
intermediate_size: is 0, want 1 to 1048576
head_dim: is 0, want 1 to 1024
vocab_size: is 0, want 1 to 2097152
max_position_embeddings: is 0, want 1 to 1073741824`)
	_, err = synth.Parse([]byte(`[]`))
	require.ErrorContains(t, err, "not a model's config.json: ")
}

// TestParseBroken: no number of a configuration becomes another one in a file, or none at all.
func TestParseBroken(t *testing.T) {
	parse := func(old, new string) (*synth.Config, error) {
		require.Contains(t, llama31, old)
		return synth.Parse([]byte(strings.Replace(llama31, old, new, 1)))
	}
	_, err := parse(`"sliding_window": null`, `"sliding_window": -7`)
	require.EqualError(t, err, "sliding_window: is -7, want 0 to 1073741824")
	_, err = parse(`"sliding_window": null`, `"num_experts": -1, "moe_intermediate_size": -32`)
	require.EqualError(t, err, "num_experts: is -1, want 0 to 4096\nmoe_intermediate_size: is -32, want 0 to 1048576")
	_, err = parse(`"factor": 8.0, "low_freq_factor": 1.0,`, ``)
	require.EqualError(t, err, "rope_scaling: is llama3 with factor 0, original_max_position_embeddings 8192, "+
		"low_freq_factor 0 and high_freq_factor 4: want all above 0, and the last one not the smaller")

	c, err := parse(`"rope_theta": 500000.0,`, ``)
	require.NoError(t, err)
	base, err := c.Meta("x").Float("llama.rope.freq_base")
	require.NoError(t, err)
	require.Equal(t, 10000.0, base)
	for _, x := range tensors(t, c) {
		if x.Name == "rope_freqs.weight" { // of 10000, too: the slowest turn 0.13 times in 8192 positions
			require.Equal(t, float32(8), x.Values[63])
		}
	}
}

// TestConfigsAsConverted compares with files that llama.cpp's naming was applied to when they were converted: the same
// tensors, and no key that says something else.
func TestConfigsAsConverted(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testref.Dir(t), "fixtures", "*.json"))
	require.NoError(t, err)
	compared := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var about struct {
			Config json.RawMessage `json:"hf_config"`
		}
		require.NoError(t, json.Unmarshal(text, &about))
		c, err := synth.Parse(about.Config)
		if err != nil {
			require.ErrorContains(t, err, "is not known", path)
			continue
		}
		compared++
		t.Run(c.ModelType, func(t *testing.T) { asConverted(t, c, strings.TrimSuffix(path, "json")+"gguf") })
	}
	require.Greater(t, compared, 15)
}

func asConverted(t *testing.T, c *synth.Config, path string) {
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	c.NextLayers, c.MTPLayers = 0, 0 // whoever converted these left heads out
	m := c.Meta("x")
	for _, key := range m.Keys() {
		want, ok := f.Meta.Get(key)
		if ok && !strings.HasPrefix(key, "general.name") {
			got, _ := m.Get(key)
			require.EqualValues(t, fmt.Sprint(want), fmt.Sprint(got), key)
		}
	}
	list := tensors(t, c)
	require.Len(t, list, len(f.Tensors))
	for _, x := range list {
		there, ok := f.Tensor(x.Name)
		require.True(t, ok, x.Name)
		shape := there.Shape
		for len(shape) > len(x.Shape) && shape[len(shape)-1] == 1 {
			shape = shape[:len(shape)-1]
		}
		require.Equal(t, shape, x.Shape, x.Name)
		if x.Values == nil {
			continue
		}
		values := make([]float32, len(x.Values))
		require.NoError(t, f.View(there, func(data []byte) error { return quant.Dequantize(there.Type, values, data) }))
		require.InDeltaSlice(t, values, x.Values, 1e-5, x.Name)
	}
}

// TestSpread: matrices keep rows of unit size at unit size; norms are near 1; both outputs are contrasted.
func TestSpread(t *testing.T) {
	c, err := synth.Find("llama-3.1-8b")
	require.NoError(t, err)
	for _, x := range tensors(t, c) {
		unit := 1 / math.Sqrt(float64(x.Shape[0]))
		switch x.Name {
		case "token_embd.weight":
			require.Equal(t, 1.0, x.Dev)
		case "output.weight":
			require.Equal(t, 3*unit, x.Dev)
		case "blk.0.attn_q.weight", "blk.31.ffn_down.weight":
			require.Equal(t, unit, x.Dev)
		case "blk.0.attn_norm.weight", "output_norm.weight":
			require.Equal(t, 1.0, x.Mean)
			require.True(t, x.Vector)
		}
	}
}

// TestFill: data has the size and spread asked for, no two rows are the same, and only the seed and the name matter.
func TestFill(t *testing.T) {
	write := func(seed uint64, x synth.Tensor, typ quant.Type) []byte {
		var out bytes.Buffer
		f := synth.Filler{Seed: seed}
		require.NoError(t, f.Write(&out, &x, typ))
		return out.Bytes()
	}
	x := synth.Tensor{Name: "m", Shape: []int{1024, 600, 2}, Dev: 0.02}
	for _, typ := range []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.MXFP4} {
		data := write(1, x, typ)
		row, err := typ.RowBytes(1024)
		require.NoError(t, err)
		require.Len(t, data, 1200*row)
		seen := map[string]bool{}
		for ; len(data) > 0; data = data[row:] {
			seen[string(data[:row])] = true
		}
		require.Len(t, seen, 1200, typ)
	}
	once := write(1, x, quant.Q4_K)
	require.Equal(t, once, write(1, x, quant.Q4_K))
	require.NotEqual(t, once, write(2, x, quant.Q4_K))
	other := x
	other.Name = "n"
	require.NotEqual(t, once, write(1, other, quant.Q4_K))

	norm := write(1, synth.Tensor{Name: "n", Shape: []int{4096}, Vector: true, Mean: 1, Dev: 0.1}, quant.F32)
	values := make([]float32, 4096)
	require.NoError(t, quant.Dequantize(quant.F32, values, norm))
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	require.InDelta(t, 1, sum/4096, 0.01)
	require.Error(t, (&synth.Filler{}).Write(&bytes.Buffer{}, &x, quant.Type(5)))
}

// TestVocabulary: any text goes there and back, without fillers.
func TestVocabulary(t *testing.T) {
	small, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	defer small.Close()
	c, err := synth.Find("llama-3.1-8b")
	require.NoError(t, err)
	m := c.Meta("x")
	require.NoError(t, synth.Vocabulary(m, &small.Meta, c.Vocab))
	require.True(t, m.Has("tokenizer.chat_template"))
	v, err := token.New(m)
	require.NoError(t, err)
	require.Equal(t, c.Vocab, v.Size())
	require.NotEmpty(t, v.EOG())
	text := "Zwölf Boxkämpfer 拳 <filler_9000> \x00\xff"
	ids, err := v.Encode(nil, text, token.Options{})
	require.NoError(t, err)
	var back []byte
	for _, id := range ids {
		require.Less(t, int(id), 8192)
		back = append(back, v.Piece(id)...)
	}
	require.Equal(t, "Zwölf Boxkämpfer 拳 <filler_9000> \x00\uFFFD", string(back))
	require.Equal(t, "<filler_100000>", string(v.Piece(100000)))

	require.EqualError(t, synth.Vocabulary(m, &small.Meta, 1000),
		"a vocabulary of 1000 tokens is too small, want at least 8192")
}

// FuzzParse: whatever the configuration says, it is refused or leads to a program or its faults.
func FuzzParse(f *testing.F) {
	f.Add([]byte(llama31))
	f.Add([]byte(`{"model_type": "gpt_oss", "num_hidden_layers": 1, "num_local_experts": -3}`))
	f.Add([]byte(`{"text_config": {"model_type": "gemma3_text"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := synth.Parse(text)
		if err != nil {
			return
		}
		if p, err := arch.Record(c.Meta("fuzz"), c.Has, arch.Options{}); err == nil {
			require.Len(t, c.Tensors(p), len(p.Weights))
		}
	})
}
