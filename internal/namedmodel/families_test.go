package namedmodel

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/storage/gguf"
)

const commonConfig = `"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
	"num_hidden_layers": 1, "vocab_size": 8192, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
	"layer_norm_eps": 1e-5, "tie_word_embeddings": false`

// attention and feedForward are what most layers have, with 4 heads of 16, 2 of keys.
const (
	around    = "model.embed_tokens.weight 8192 64\nmodel.norm.weight 64\nlm_head.weight 8192 64\n"
	inputNorm = "L.input_layernorm.weight 64\n"
	attention = "L.self_attn.q_proj.weight 64 64\nL.self_attn.k_proj.weight 32 64\nL.self_attn.v_proj.weight 32 64\n" +
		"L.self_attn.o_proj.weight 64 64\n"
	feedForward = "L.mlp.gate_proj.weight 96 64\nL.mlp.up_proj.weight 96 64\nL.mlp.down_proj.weight 64 96\n"
	postNorm    = "L.post_attention_layernorm.weight 64\n"
)

// bare are families that no fixture has: names and shapes as their makers' folders have them.
var bare = []struct{ class, config, tensors string }{
	{"Cohere2ForCausalLM", `"sliding_window": 32, "rotary_pct": 1.0, "logit_scale": 0.5, "tie_word_embeddings": true`,
		around + inputNorm + attention + feedForward},
	{"GemmaForCausalLM", `"head_dim": 16`, around + inputNorm + attention + feedForward + postNorm},
	{"Exaone4ForCausalLM", `"sliding_window": 32, "sliding_window_pattern": "LLLG", "head_dim": 16`,
		around + attention + feedForward + postNorm + `L.post_feedforward_layernorm.weight 64
		L.self_attn.q_norm.weight 16
		L.self_attn.k_norm.weight 16`},
	{"Glm4ForCausalLM", `"partial_rotary_factor": 0.5, "head_dim": 16`, around + inputNorm + attention + postNorm + `
		L.post_self_attn_layernorm.weight 64
		L.post_mlp_layernorm.weight 64
		L.mlp.gate_up_proj.weight 192 64
		L.mlp.down_proj.weight 64 96`},
	{"InternLM2ForCausalLM", `"x": 0`, `model.tok_embeddings.weight 8192 64
		model.norm.weight 64
		output.weight 8192 64
		L.attention_norm.weight 64
		L.attention.wqkv.weight 128 64
		L.attention.wo.weight 64 64
		L.ffn_norm.weight 64
		L.feed_forward.w1.weight 96 64
		L.feed_forward.w2.weight 64 96
		L.feed_forward.w3.weight 96 64`},
	{"StableLmForCausalLM", `"partial_rotary_factor": 0.25, "use_qkv_bias": false`,
		around + inputNorm + attention + feedForward + postNorm + `model.norm.bias 64
		L.input_layernorm.bias 64
		L.post_attention_layernorm.bias 64`},
	{"GPTNeoXForCausalLM", `"rotary_pct": 0.25`, `gpt_neox.embed_in.weight 8192 64
		embed_out.weight 8192 64
		gpt_neox.final_layer_norm.weight 64
		gpt_neox.final_layer_norm.bias 64
		gpt_neox.layers.0.input_layernorm.weight 64
		gpt_neox.layers.0.input_layernorm.bias 64
		gpt_neox.layers.0.post_attention_layernorm.weight 64
		gpt_neox.layers.0.post_attention_layernorm.bias 64
		gpt_neox.layers.0.attention.bias 1 1 512 512
		gpt_neox.layers.0.attention.masked_bias
		gpt_neox.layers.0.attention.rotary_emb.inv_freq 2
		gpt_neox.layers.0.attention.query_key_value.weight 192 64
		gpt_neox.layers.0.attention.query_key_value.bias 192
		gpt_neox.layers.0.attention.dense.weight 64 64
		gpt_neox.layers.0.attention.dense.bias 64
		gpt_neox.layers.0.mlp.dense_h_to_4h.weight 96 64
		gpt_neox.layers.0.mlp.dense_h_to_4h.bias 96
		gpt_neox.layers.0.mlp.dense_4h_to_h.weight 64 96
		gpt_neox.layers.0.mlp.dense_4h_to_h.bias 64`},
	{"GPT2LMHeadModel", `"n_embd": 64, "n_head": 4, "n_layer": 1, "n_ctx": 512, "layer_norm_epsilon": 1e-5`, `wte.weight 8192 64
		wpe.weight 512 64
		ln_f.weight 64
		ln_f.bias 64
		h.0.ln_1.weight 64
		h.0.ln_1.bias 64
		h.0.ln_2.weight 64
		h.0.ln_2.bias 64
		h.0.attn.bias 1 1 512 512
		h.0.attn.c_attn.weight 64 192
		h.0.attn.c_attn.bias 192
		h.0.attn.c_proj.weight 64 64
		h.0.attn.c_proj.bias 64
		h.0.mlp.c_fc.weight 64 256
		h.0.mlp.c_fc.bias 256
		h.0.mlp.c_proj.weight 256 64
		h.0.mlp.c_proj.bias 64`},
	{"PhiMoEForCausalLM", `"original_max_position_embeddings": 512, "num_local_experts": 2, "num_experts_per_tok": 1,
		"sliding_window": 512`, around + inputNorm + attention + postNorm + `model.norm.bias 64
		lm_head.bias 8192
		L.input_layernorm.bias 64
		L.post_attention_layernorm.bias 64
		L.self_attn.q_proj.bias 64
		L.self_attn.k_proj.bias 32
		L.self_attn.v_proj.bias 32
		L.self_attn.o_proj.bias 64
		L.block_sparse_moe.gate.weight 2 64
		` + experts("L.block_sparse_moe.experts.%d.w1.weight 96 64", "L.block_sparse_moe.experts.%d.w2.weight 64 96",
		"L.block_sparse_moe.experts.%d.w3.weight 96 64")},
	{"Ernie4_5_MoeForCausalLM", `"moe_num_experts": 2, "moe_k": 1, "moe_layer_interval": 1, "moe_layer_start_index": 0,
		"moe_intermediate_size": 32, "moe_num_shared_experts": 1`, around + inputNorm + attention + postNorm + `
		L.mlp.gate.weight 2 64
		L.mlp.moe_statics.e_score_correction_bias 1 2
		L.mlp.shared_experts.gate_proj.weight 32 64
		L.mlp.shared_experts.up_proj.weight 32 64
		L.mlp.shared_experts.down_proj.weight 64 32
		` + mlpExperts},
	{"HunYuanMoEV1ForCausalLM", `"moe_intermediate_size": [32], "moe_topk": [1], "num_shared_expert": [1], "num_experts": 2,
		"num_experts_per_tok": 1, "head_dim": 16`, around + inputNorm + attention + postNorm + `
		L.self_attn.query_layernorm.weight 16
		L.self_attn.key_layernorm.weight 16
		L.mlp.gate.wg.weight 2 64
		L.mlp.shared_mlp.gate_proj.weight 96 64
		L.mlp.shared_mlp.up_proj.weight 96 64
		L.mlp.shared_mlp.down_proj.weight 64 96
		` + mlpExperts},
	{"FalconH1ForCausalLM", `"head_dim": 16, "mamba_d_ssm": 64, "mamba_n_groups": 1, "mamba_d_state": 16, "mamba_d_head": 16,
		"mamba_d_conv": 4, "mlp_multipliers": [1, 2], "ssm_multipliers": [1, 1, 1, 1, 1], "embedding_multiplier": 3.0,
		"mamba_n_heads": 4`,
		strings.Replace(around, "model.norm", "model.final_layernorm", 1) + inputNorm + attention + `
		L.pre_ff_layernorm.weight 64
		L.feed_forward.gate_proj.weight 96 64
		L.feed_forward.up_proj.weight 96 64
		L.feed_forward.down_proj.weight 64 96
		L.mamba.in_proj.weight 164 64
		L.mamba.conv1d.weight 96 1 4
		L.mamba.conv1d.bias 96
		L.mamba.dt_bias 4
		L.mamba.A_log 4
		L.mamba.D 4
		L.mamba.norm.weight 64
		L.mamba.out_proj.weight 64 64`},
}

const mlpExperts = `L.mlp.experts.0.gate_proj.weight 32 64
	L.mlp.experts.0.up_proj.weight 32 64
	L.mlp.experts.0.down_proj.weight 64 32
	L.mlp.experts.1.gate_proj.weight 32 64
	L.mlp.experts.1.up_proj.weight 32 64
	L.mlp.experts.1.down_proj.weight 64 32`

func experts(lines ...string) string {
	var b strings.Builder
	for i := range 2 {
		for _, line := range lines {
			fmt.Fprintf(&b, line+"\n", i)
		}
	}
	return b.String()
}

// TestBareFamilies: a model of the family has exactly the tensors and keys that its folder becomes.
func TestBareFamilies(t *testing.T) {
	tokenizer, err := os.ReadFile(filepath.Join(testref.Dir(t), "models", "draft-hf", "tokenizer.json"))
	require.NoError(t, err)
	for _, c := range bare {
		t.Run(c.class, func(t *testing.T) {
			folder := &convert.Folder{Name: "x", Texts: map[string][]byte{"tokenizer.json": tokenizer,
				"config.json": fmt.Appendf(nil, `{"architectures": [%q], %s, %s}`, c.class, commonConfig, c.config)}}
			for line := range strings.Lines(c.tensors) {
				words := strings.Fields(strings.Replace(line, "L.", "model.layers.0.", 1))
				if len(words) == 0 {
					continue
				}
				one := element.Tensor{Name: words[0], Type: element.BF16}
				for _, w := range words[1:] {
					n, err := strconv.Atoi(w)
					require.NoError(t, err)
					one.Shape = append(one.Shape, n)
				}
				folder.Tensors = append(folder.Tensors, one)
			}
			plan, err := convert.Plan(folder, convert.Options{})
			require.NoError(t, err)
			bf16, _ := ftype.Find("BF16")
			made := &Conversion{Model: plan, FileType: bf16}
			types, err := made.types(true)
			require.NoError(t, err)
			for i, x := range plan.Tensors {
				made.tensors = append(made.tensors, gguf.Tensor{Name: x.Name, Type: types[i], Shape: x.Shape})
			}
			require.NoError(t, made.check())
		})
	}
}
