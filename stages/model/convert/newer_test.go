package convert_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
)

// small is what all configurations of TestNewerFolders have in common.
const small = `"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
	"num_key_value_heads": 2, "max_position_embeddings": 512, "vocab_size": 50, "rope_theta": 10000, `

const (
	attention = `model.layers.*.self_attn.q_proj.weight 64 64
		model.layers.*.self_attn.k_proj.weight 32 64
		model.layers.*.self_attn.v_proj.weight 32 64
		`
	output  = "model.layers.*.self_attn.o_proj.weight 64 64\n"
	inEvery = attention + output + `model.layers.*.input_layernorm.weight 64
		model.layers.*.post_attention_layernorm.weight 64
		`
	gated = `model.layers.*.mlp.gate_proj.weight 96 64
		model.layers.*.mlp.up_proj.weight 96 64
		model.layers.*.mlp.down_proj.weight 64 96
		`
	shifts = `model.layers.*.input_layernorm.bias 64
		model.layers.*.post_attention_layernorm.bias 64
		model.norm.bias 64
		`
	ends = "model.embed_tokens.weight 50 64\nmodel.norm.weight 64\nlm_head.weight 50 64\n"
)

// TestNewerFolders: what becomes of a folder is all that its architecture asks for, in shapes that fit, and the keys
// say what the configuration does.
func TestNewerFolders(t *testing.T) {
	for _, c := range []struct {
		class, config, tensors string
		keys                   map[string]float64
	}{
		{"OrionForCausalLM", `"rms_norm_eps": 0.25`, inEvery + gated + shifts + ends,
			map[string]float64{"orion.attention.layer_norm_epsilon": 0.25}},
		{"NemotronForCausalLM", `"norm_eps": 0.5, "partial_rotary_factor": 0.5`,
			inEvery + shifts + ends + "model.layers.*.mlp.up_proj.weight 96 64\nmodel.layers.*.mlp.down_proj.weight 64 96\n",
			map[string]float64{"nemotron.attention.layer_norm_epsilon": 0.5, "nemotron.rope.dimension_count": 8}},
		{"Mistral3ForConditionalGeneration", `"text_config": {"model_type": "ministral3", "rms_norm_eps": 1e-5,
			"rope_parameters": {"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 32, "mscale": 1,
			"mscale_all_dim": 1, "llama_4_scaling_beta": 0.5, "rope_theta": 1000000}}`, inEvery + gated + ends,
			map[string]float64{"mistral3.rope.scaling.yarn_log_multiplier": 1, "mistral3.rope.freq_base": 1e6,
				"mistral3.attention.temperature_scale": 0.5, "mistral3.rope.scaling.original_context_length": 32,
				"mistral3.rope.dimension_count": 16}},
		{"MaincoderForCausalLM", `"rms_norm_eps": 1e-5`, inEvery + gated + ends + `model.layers.*.self_attn.q_norm.weight 16
			model.layers.*.self_attn.k_norm.weight 16`, map[string]float64{"maincoder.rope.dimension_count": 16}},
		{"PanguEmbeddedForCausalLM", `"rms_norm_eps": 1e-5`, inEvery + gated + ends + `model.layers.*.self_attn.q_proj.bias 64
			model.layers.*.self_attn.k_proj.bias 32
			model.layers.*.self_attn.v_proj.bias 32
			model.layers.*.self_attn.o_proj.bias 64`, map[string]float64{"pangu-embedded.rope.dimension_count": 16}},
		{"MiniMaxM2ForCausalLM", `"rms_norm_eps": 1e-6, "num_local_experts": 2, "num_experts_per_tok": 1, "rotary_dim": 8,
			"scoring_func": "sigmoid"`, inEvery + ends + `model.layers.*.self_attn.q_norm.weight 64
			model.layers.*.self_attn.k_norm.weight 32
			model.layers.*.block_sparse_moe.gate.weight 2 64
			model.layers.*.block_sparse_moe.e_score_correction_bias 2
			` + experts("block_sparse_moe", 96),
			map[string]float64{"minimax-m2.rope.dimension_count": 8, "minimax-m2.expert_gating_func": 2,
				"minimax-m2.expert_feed_forward_length": 96}},
		{"Lfm2MoeForCausalLM", `"norm_eps": 1e-5, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32,
			"num_dense_layers": 1, "conv_L_cache": 3, "layer_types": ["conv", "full_attention"],
			"tie_word_embeddings": true`, `model.embed_tokens.weight 50 64
			model.embedding_norm.weight 64
			model.layers.*.operator_norm.weight 64
			model.layers.*.ffn_norm.weight 64
			model.layers.0.conv.in_proj.weight 192 64
			model.layers.0.conv.out_proj.weight 64 64
			model.layers.0.conv.conv.weight 64 1 3
			model.layers.0.feed_forward.w1.weight 96 64
			model.layers.0.feed_forward.w2.weight 64 96
			model.layers.0.feed_forward.w3.weight 96 64
			model.layers.1.self_attn.q_layernorm.weight 16
			model.layers.1.self_attn.k_layernorm.weight 16
			model.layers.1.self_attn.out_proj.weight 64 64
			model.layers.1.feed_forward.gate.weight 2 64
			model.layers.1.feed_forward.expert_bias 2
			` + strings.ReplaceAll(attention+experts("feed_forward", 32), "*.", "1."),
			map[string]float64{"lfm2moe.feed_forward_length": 96, "lfm2moe.leading_dense_block_count": 1,
				"lfm2moe.expert_feed_forward_length": 32}},
		{"T5ForConditionalGeneration", t5Config + `"feed_forward_proj": "gated-gelu"`, t5Tensors +
			"lm_head.weight 50 64\n" + t5Network("wi_0", "wi_1"), map[string]float64{"t5.attention.key_length": 16,
			"t5.decoder_block_count": 2, "t5.decoder_start_token_id": 3, "t5.attention.relative_buckets_count": 32}},
		{"T5ForConditionalGeneration", t5Config + `"n_positions": 64`, t5Tensors + t5Network("wi"),
			map[string]float64{"t5.context_length": 64, "t5.feed_forward_length": 96, "t5.block_count": 2}},
	} {
		f := &convert.Folder{Name: "x", Tensors: named(t, c.tensors), Texts: map[string][]byte{
			"config.json": []byte(`{"architectures": ["` + c.class + `"], ` + small + c.config + `}`)}}
		m, err := convert.Plan(f, convert.Options{})
		require.NoError(t, err, c.class)
		tensors, has := []ir.Tensor{}, map[string]bool{}
		for _, x := range m.Tensors {
			raised := c.class == "NemotronForCausalLM" && strings.HasSuffix(x.Name, "norm.weight")
			require.Equal(t, raised, x.Change == convert.Plus1, x.Name)
			tensors, has[x.Name] = append(tensors, ir.Tensor{Name: x.Name, Type: quant.F32, Shape: x.Shape}), true
		}
		p, err := arch.Record(m.Meta, func(name string) bool { return has[name] }, arch.Options{})
		require.NoError(t, err, c.class)
		_, err = ir.Bind(p, tensors)
		require.NoError(t, err, c.class)
		ear, err := arch.RecordEar(m.Meta, func(name string) bool { return has[name] })
		require.NoError(t, err, c.class)
		if ear != nil {
			_, err = ir.Bind(ear.Program, tensors)
			require.NoError(t, err, c.class)
		}
		for key, want := range c.keys {
			got, err := m.Meta.Float(key)
			if err != nil {
				var n int64
				n, err = m.Meta.Int(key)
				got = float64(n)
			}
			require.NoError(t, err)
			require.Equal(t, want, got, key)
		}
	}
}

const (
	t5Config = `"num_layers": 2, "d_model": 64, "d_ff": 96, "num_heads": 4, "d_kv": 16, "decoder_start_token_id": 3, `

	t5Tensors = `shared.weight 50 64
		encoder.embed_tokens.weight 50 64
		encoder.final_layer_norm.weight 64
		decoder.final_layer_norm.weight 64
		encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight 32 4
		decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight 32 4
		encoder.block.*.layer.0.layer_norm.weight 64
		encoder.block.*.layer.0.SelfAttention.q.weight 64 64
		encoder.block.*.layer.0.SelfAttention.k.weight 64 64
		encoder.block.*.layer.0.SelfAttention.v.weight 64 64
		encoder.block.*.layer.0.SelfAttention.o.weight 64 64
		encoder.block.*.layer.1.layer_norm.weight 64
		decoder.block.*.layer.0.layer_norm.weight 64
		decoder.block.*.layer.0.SelfAttention.q.weight 64 64
		decoder.block.*.layer.0.SelfAttention.k.weight 64 64
		decoder.block.*.layer.0.SelfAttention.v.weight 64 64
		decoder.block.*.layer.0.SelfAttention.o.weight 64 64
		decoder.block.*.layer.1.layer_norm.weight 64
		decoder.block.*.layer.1.EncDecAttention.q.weight 64 64
		decoder.block.*.layer.1.EncDecAttention.k.weight 64 64
		decoder.block.*.layer.1.EncDecAttention.v.weight 64 64
		decoder.block.*.layer.1.EncDecAttention.o.weight 64 64
		decoder.block.*.layer.2.layer_norm.weight 64
		`
)

// t5Network are the matrices of T5's feed-forward networks, whose first ones have these names.
func t5Network(first ...string) (lines string) {
	for _, part := range []string{"encoder.block.*.layer.1.", "decoder.block.*.layer.2."} {
		for _, name := range first {
			lines += part + "DenseReluDense." + name + ".weight 96 64\n"
		}
		lines += part + "DenseReluDense.wo.weight 64 96\n"
	}
	return lines
}

// experts are the matrices of two experts in every layer.
func experts(part string, ffn int) (lines string) {
	for e := range 2 {
		at, n := "model.layers.*."+part+".experts."+strconv.Itoa(e), strconv.Itoa(ffn)
		lines += at + ".w1.weight " + n + " 64\n" + at + ".w2.weight 64 " + n + "\n" + at + ".w3.weight " + n + " 64\n"
	}
	return lines
}

// named reads a tensor from each line, a name and a shape; a * stands for both layers.
func named(t *testing.T, lines string) (tensors []element.Tensor) {
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var shape []int
		for _, word := range words[1:] {
			n, err := strconv.Atoi(word)
			require.NoError(t, err)
			shape = append(shape, n)
		}
		names := []string{words[0]}
		if layer, rest, ok := strings.Cut(words[0], "*"); ok {
			names = []string{layer + "0" + rest, layer + "1" + rest}
		}
		for _, name := range names {
			tensors = append(tensors, element.Tensor{Name: name, Type: element.F32, Shape: shape})
		}
	}
	return tensors
}
