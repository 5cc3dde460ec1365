package convert

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// counted is a tensor of 0, 1, 2, …
func counted(shape ...int) (element.Tensor, []byte) {
	t := element.Tensor{Name: "t", Type: element.F32, Shape: shape}
	n, _ := t.Count()
	var data []byte
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)))
	}
	return t, data
}

// ordered runs a rule on a tensor of counted rows of one value, and lists what comes out by name.
func ordered(t *testing.T, config string, r rule, shape ...int) map[string][]float32 {
	t.Helper()
	one, data := counted(shape...)
	o, err := modelConfig([]byte(config))
	require.NoError(t, err)
	c := &converter{config: o, family: &family{}, byName: map[string]*output{}}
	require.NoError(t, c.apply(r, &source{Tensor: one, expert: -1, to: r.to}))
	require.NoError(t, o.err())
	tensors, err := c.finish()
	require.NoError(t, err)
	all := map[string][]float32{}
	for i := range tensors {
		var b bytes.Buffer
		require.NoError(t, tensors[i].Write(&b, quant.F32, func(_ string, use func([]byte) error) error { return use(data) }))
		values := make([]float32, b.Len()/4)
		require.NoError(t, quant.Dequantize(quant.F32, values, b.Bytes()))
		all[tensors[i].Name] = values
	}
	return all
}

// The orders in which rows are stored, by hand: what the file has first was where in the folder.
func TestOrders(t *testing.T) {
	heads := `{"num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 8, `
	for _, c := range []struct {
		name, config string
		rule         rule
		shape        []int
		want         map[string][]float32
	}{
		{"halves of heads become pairs", heads + `"x": 0}`, by("q", rotated((*converter).heads)), []int{12, 1},
			map[string][]float32{"q": {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}}},
		{"biases too", heads + `"x": 0}`, by("q", rotated((*converter).heads)), []int{12},
			map[string][]float32{"q": {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}}},
		{"keys transposed, values not", heads + `"qk_nope_head_dim": 2, "v_head_dim": 1}`, by("", latentHalves), []int{6, 2},
			map[string][]float32{"attn_k_b.weight": {0, 2, 1, 3, 6, 8, 7, 9}, "attn_v_b.weight": {4, 5, 10, 11}}},
		{"gate and up in turns", heads + `"x": 0}`, by("", inTurns(biases)), []int{2, 4},
			map[string][]float32{"ffn_gate_exps.bias": {0, 2, 4, 6}, "ffn_up_exps.bias": {1, 3, 5, 7}}},
		{"gate and up transposed in turns", heads + `"x": 0}`, by("", transposedInTurns), []int{1, 2, 4},
			map[string][]float32{"ffn_gate_exps.weight": {0, 4, 2, 6}, "ffn_up_exps.weight": {1, 5, 3, 7}}},
		{"gate before up, transposed", heads + `"x": 0}`, by("", transposedHalves), []int{1, 2, 4},
			map[string][]float32{"ffn_gate_exps.weight": {0, 4, 1, 5}, "ffn_up_exps.weight": {2, 6, 3, 7}}},
		{"values by the number in their key", `{"linear_num_key_heads": 2, "linear_num_value_heads": 4,
			"linear_key_head_dim": 1, "linear_value_head_dim": 2}`, by("z", tiledHeads(0, 0, Same)), []int{8, 1},
			map[string][]float32{"z": {0, 1, 4, 5, 2, 3, 6, 7}}},
		{"columns by the number in their key", `{"linear_num_key_heads": 2, "linear_num_value_heads": 4,
			"linear_key_head_dim": 1, "linear_value_head_dim": 1}`, by("o", tiledHeads(1, 0, Same)), []int{2, 4},
			map[string][]float32{"o": {0, 2, 1, 3, 4, 6, 5, 7}}},
		{"key by key", `{"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 1,
			"linear_value_head_dim": 1}`, by("", groupedQKVZ), []int{12, 1},
			map[string][]float32{"attn_qkv.weight": {0, 6, 1, 7, 2, 3, 8, 9}, "attn_gate.weight": {4, 5, 10, 11}}},
		{"head by head", heads + `"x": 0}`, by("qkv", byHead), []int{12},
			map[string][]float32{"qkv": {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}}},
		{"groups of queries", heads + `"x": 0}`, by("", internQKV), []int{8, 1},
			map[string][]float32{"attn_q.weight": {0, 1, 2, 3}, "attn_k.weight": {4, 5}, "attn_v.weight": {6, 7}}},
		{"matrices that lie the other way", heads + `"x": 0}`, by("w", transposed), []int{2, 3},
			map[string][]float32{"w": {0, 3, 1, 4, 2, 5}}},
		{"factors by part", `{"ssm_multipliers": [1, 2, 3, 4, 5], "ssm_in_multiplier": 10, "mamba_d_ssm": 1, "mamba_n_groups": 1,
			"mamba_d_state": 1, "hidden_size": 1}`, by("in", falconIn), []int{6, 1},
			map[string][]float32{"in": {0, 20, 60, 120, 200, 250}}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, ordered(t, c.config, c.rule, c.shape...)) })
	}
}

// A shape that is not what the configuration says is an error of the tensor, whatever the numbers are.
func TestShapesThatDoNotFit(t *testing.T) {
	one, _ := counted(6, 2)
	for name, use := range map[string]func(v View){
		"does not divide":  func(v View) { v.split(0, 4, 0) },
		"divide into [-1":  func(v View) { v.split(0, -1, 0) },
		"divide into [922": func(v View) { v.split(0, math.MaxInt64, 2) },
		"no part of 7":     func(v View) { v.narrow(0, 0, 7) },
		"from 9223":        func(v View) { v.narrow(0, math.MaxInt64, 1) },
		"want 3 dim":       func(v View) { v.swap(0, 2) },
	} {
		c := &converter{byName: map[string]*output{}}
		err := c.apply(rule{how: func(*converter, *source) { use(whole(one)) }}, &source{Tensor: one})
		require.ErrorContains(t, err, name)
	}
}

func TestInfinity(t *testing.T) {
	require.Equal(t, `{"a": null, "b": [null, 1], "c": "NaN \" Infinity", "d": null}`,
		string(withoutInfinity([]byte(`{"a": NaN, "b": [-Infinity, 1], "c": "NaN \" Infinity", "d": Infinity}`))))
}

func TestParseObjectRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"[]":     "config.json: it holds a JSON array, want an object",
		`"text"`: "config.json: it holds a JSON string, want an object",
		"<html>": "config.json: invalid character '<' looking for beginning of value: is the download complete?",
		`{"a": `: "config.json: unexpected EOF: is the download complete?",
	} {
		_, err := parseObject("config.json", []byte(text))
		require.EqualError(t, err, want)
	}
}

// Faults of folders that no shape shows.
func TestPlanRefuses(t *testing.T) {
	matrix := func(name string, shape ...int) element.Tensor {
		return element.Tensor{Name: name, Type: element.BF16, Shape: shape}
	}
	const tokenizer = `{"model": {"type": "BPE", "vocab": {"a": 0}}, "pre_tokenizer": {"type": "ByteLevel"}}`
	for _, c := range []struct {
		config  string
		tensors []element.Tensor
		want    string
	}{
		{`"vocab_size": 100`, []element.Tensor{matrix("model.embed_tokens.weight", 10, 4)},
			"vocab_size is 100, and there are embeddings for 10 tokens"},
		{`"num_hidden_layers": 100000`, nil, "has 100000 layers, want at most 4096"},
		{`"num_hidden_layers": "two"`, nil, "num_hidden_layers is two, want a number from 0"},
		{`"hidden_size": 4`, []element.Tensor{matrix("model.layers.0.mlp.experts.1.up_proj.weight", 4, 4)},
			"expert 0 is missing or there twice"},
		{`"hidden_size": 4`, []element.Tensor{matrix("model.layers.0.mlp.experts.0.up_proj.weight", 4, 4),
			matrix("model.layers.0.mlp.experts.1.up_proj.weight", 4, 8)}, "which there is already, of shape [4 4]"},
		{`"hidden_size": 4`, []element.Tensor{matrix("model.embed_tokens.weight", 4, 4), matrix("embed_tokens.weight", 4, 4)},
			"becomes token_embd.weight of shape [4 4], which there is already"},
		{`"hidden_size": 4`, []element.Tensor{matrix("model.strange.weight", 4)}, `the first is "model.strange.weight"`},
		{`"hidden_size": 4`, []element.Tensor{{Name: "model.norm.weight", Type: element.I64, Shape: []int{4}}},
			"is of type I64, want F32, F16 or BF16"},
		{`"hidden_size": 4, "rope_scaling": {"type": "banana", "factor": 2}`, nil,
			`positions are scaled by "banana", want one of default, linear, yarn`},
		{`"quantization_config": {"quant_method": "bitsandbytes"}`, nil, `its weights were quantised by "bitsandbytes"`},
	} {
		_, err := Plan(&Folder{Tensors: c.tensors, Texts: map[string][]byte{"tokenizer.json": []byte(tokenizer),
			"config.json": []byte(`{"num_hidden_layers": 1, "architectures": ["Qwen3MoeForCausalLM"], ` + c.config + `}`)}},
			Options{})
		require.ErrorContains(t, err, c.want)
		require.Equal(t, 1, strings.Count(err.Error(), c.want), "it is said once: %v", err)
	}
}
