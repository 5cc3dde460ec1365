package convert_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
)

// eagleFolder is a folder of EAGLE-3 whose layer has names that begin so.
func eagleFolder(layer, config string) *convert.Folder {
	f := &convert.Folder{Name: "eagle", Texts: map[string][]byte{"config.json": []byte(config)}}
	add := func(name string, typ element.Type, shape ...int) {
		f.Tensors = append(f.Tensors, element.Tensor{Name: name, Type: typ, Shape: shape})
	}
	for name, shape := range map[string][]int{"fc": {64, 288}, "norm": {64}, "lm_head": {10, 64},
		layer + "hidden_norm": {64}, layer + "input_layernorm": {64}, layer + "post_attention_layernorm": {64},
		layer + "self_attn.q_proj": {64, 128}, layer + "self_attn.k_proj": {32, 128}, layer + "self_attn.v_proj": {32, 128},
		layer + "self_attn.o_proj": {64, 64}, layer + "mlp.gate_proj": {96, 64}, layer + "mlp.up_proj": {96, 64},
		layer + "mlp.down_proj": {64, 96}} {
		add(name+".weight", element.F16, shape...)
	}
	add("d2t", element.I64, 10)
	add("t2d", element.Bool, 20)
	return f
}

const eagleKeys = `"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
	"num_hidden_layers": 1, "rms_norm_eps": 1e-5, "max_position_embeddings": 128, "vocab_size": 20`

// TestEagle: folders of EAGLE-3, by whatever names they go, become files that its program takes, but for what is their
// target's.
func TestEagle(t *testing.T) {
	for _, c := range []struct {
		layer, config string
		layers        []int64
	}{
		{"midlayer.", `{"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 10, "target_hidden_size": 96,` + eagleKeys + `}`, nil},
		{"layers.0.", `{"architectures": ["Eagle3Speculator"], "draft_vocab_size": 10, "target_hidden_size": 96,
			"norm_before_residual": true, "eagle_aux_hidden_state_layer_ids": [1, 2, 5],
			"transformer_layer_config": {` + eagleKeys + `}}`, []int64{2, 3, 6}},
		{"midlayer.", `{"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 10, "target_hidden_size": 96,
			"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]},` + eagleKeys + `}`, []int64{1, 2, 3}},
	} {
		plan, err := convert.Plan(eagleFolder(c.layer, c.config), convert.Options{})
		require.NoError(t, err)
		layers, _ := plan.Meta.Ints(arch.EagleLayers)
		require.Equal(t, c.layers, layers)
		normed, err := plan.Meta.Bool("eagle3.norm_before_residual")
		require.NoError(t, err)
		require.Equal(t, strings.Contains(c.config, "norm_before"), normed)
		tensors := []ir.Tensor{{Name: "token_embd.weight", Type: quant.F16, Shape: []int{64, 20}}} // its target's
		has := map[string]bool{}
		for i := range plan.Tensors {
			x := &plan.Tensors[i]
			tensors = append(tensors, ir.Tensor{Name: x.Name, Type: x.Own(), Shape: x.Shape})
			has[x.Name] = true
		}
		p, err := arch.Record(plan.Meta, func(name string) bool { return has[name] },
			arch.Options{Known: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 19}})
		require.NoError(t, err)
		_, err = ir.Bind(p, tensors)
		require.NoError(t, err)
	}
	_, err := convert.Plan(eagleFolder("midlayer.", `{"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 10,
		"eagle_aux_hidden_state_layer_ids": [1, 1e9, 2],`+eagleKeys+`}`), convert.Options{})
	require.ErrorContains(t, err, "eagle_aux_hidden_state_layer_ids has 1e+09, want numbers of layers")
}

// TestEagleTokens: a folder says how far a token is from its place, a file which it is.
func TestEagleTokens(t *testing.T) {
	plan, err := convert.Plan(eagleFolder("midlayer.", `{"draft_vocab_size": 10,`+eagleKeys+`}`), convert.Options{})
	require.NoError(t, err)
	for i := range plan.Tensors {
		x := &plan.Tensors[i]
		if x.Name != arch.EagleKnown {
			continue
		}
		var out bytes.Buffer
		require.Equal(t, quant.I64, x.Own())
		require.NoError(t, x.Write(&out, x.Own(), func(name string, use func([]byte) error) error {
			require.Equal(t, "d2t", name)
			var from bytes.Buffer
			require.NoError(t, binary.Write(&from, binary.LittleEndian, []int64{0, 0, 1, 1, 10, 10, 10, 10, 10, 10}))
			return use(from.Bytes())
		}))
		ids := make([]int64, 10)
		require.NoError(t, binary.Read(&out, binary.LittleEndian, ids))
		require.Equal(t, []int64{0, 1, 3, 4, 14, 15, 16, 17, 18, 19}, ids)
		return
	}
	require.Fail(t, "there is none")
}
