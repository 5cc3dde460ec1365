package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
)

// llamaTensors are those of a layer of Llama without its network, by what follows its number.
const llamaTensors = `input_layernorm.weight 64; post_attention_layernorm.weight 64; self_attn.q_proj.weight 64 64;
	self_attn.k_proj.weight 32 64; self_attn.v_proj.weight 32 64; self_attn.o_proj.weight 64 64;`

// plains are folders that are known by their names and shapes alone. second is the second layer, if it is another.
var plains = []struct {
	arch, config, outside, layer, second string
	turned                               bool // rows of Q and K are put in another order
}{
	{arch: "arcee", turned: true, config: `{"architectures": ["ArceeForCausalLM"], "rms_norm_eps": 1e-5, "vocab_size": 100`,
		outside: `model.embed_tokens.weight 100 64; model.norm.weight 64; lm_head.weight 100 64`,
		layer:   llamaTensors + `mlp.up_proj.weight 96 64; mlp.down_proj.weight 64 96`},
	{arch: "olmo", turned: true, config: `{"architectures": ["OlmoForCausalLM"], "vocab_size": 100`,
		outside: `model.embed_tokens.weight 100 64`,
		layer: strings.Join(strings.Split(llamaTensors, ";")[2:], ";") + `mlp.gate_proj.weight 96 64;
			mlp.up_proj.weight 96 64; mlp.down_proj.weight 64 96`},
	{arch: "phi2", config: `{"architectures": ["PhiForCausalLM"], "layer_norm_eps": 1e-5, "vocab_size": 100,
		"partial_rotary_factor": 0.5`,
		outside: `model.embed_tokens.weight 100 64; model.final_layernorm.weight 64; model.final_layernorm.bias 64;
			lm_head.weight 100 64; lm_head.bias 100`,
		layer: `input_layernorm.weight 64; input_layernorm.bias 64; self_attn.q_proj.weight 64 64; self_attn.q_proj.bias 64;
			self_attn.k_proj.weight 32 64; self_attn.k_proj.bias 32; self_attn.v_proj.weight 32 64; self_attn.v_proj.bias 32;
			self_attn.dense.weight 64 64; self_attn.dense.bias 64; mlp.fc1.weight 96 64; mlp.fc1.bias 96;
			mlp.fc2.weight 64 96; mlp.fc2.bias 64`},
	{arch: "dots1", config: `{"architectures": ["Dots1ForCausalLM"], "rms_norm_eps": 1e-5, "vocab_size": 100,
		"n_routed_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "n_shared_experts": 2,
		"first_k_dense_replace": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": true`,
		outside: `model.embed_tokens.weight 100 64; model.norm.weight 64; lm_head.weight 100 64`,
		layer: llamaTensors + `self_attn.q_norm.weight 16; self_attn.k_norm.weight 16; mlp.gate_proj.weight 96 64;
			mlp.up_proj.weight 96 64; mlp.down_proj.weight 64 96`,
		second: llamaTensors + `self_attn.q_norm.weight 16; self_attn.k_norm.weight 16; mlp.gate.weight 2 64;
			mlp.gate.e_score_correction_bias 2; mlp.experts.0.gate_proj.weight 16 64; mlp.experts.1.gate_proj.weight 16 64;
			mlp.experts.0.up_proj.weight 16 64; mlp.experts.1.up_proj.weight 16 64; mlp.experts.0.down_proj.weight 64 16;
			mlp.experts.1.down_proj.weight 64 16; mlp.shared_experts.gate_proj.weight 32 64;
			mlp.shared_experts.up_proj.weight 32 64; mlp.shared_experts.down_proj.weight 64 32`},
}

// TestPlainFolders: a folder with a family's names and shapes becomes a file that its architecture takes whole.
func TestPlainFolders(t *testing.T) {
	for _, c := range plains {
		t.Run(c.arch, func(t *testing.T) {
			second := c.second
			if second == "" {
				second = c.layer
			}
			f := &convert.Folder{Name: "x", Texts: map[string][]byte{"config.json": []byte(c.config + `,
				"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
				"num_key_value_heads": 2, "max_position_embeddings": 512}`)}}
			f.Tensors = append(f.Tensors, tensorsOf(t, "", c.outside)...)
			f.Tensors = append(f.Tensors, tensorsOf(t, "model.layers.0.", c.layer)...)
			f.Tensors = append(f.Tensors, tensorsOf(t, "model.layers.1.", second)...)
			plan, err := convert.Plan(f, convert.Options{})
			require.NoError(t, err)
			var tensors []ir.Tensor
			names := map[string]bool{}
			for _, x := range plan.Tensors {
				tensors = append(tensors, ir.Tensor{Name: x.Name, Type: quant.F32, Shape: x.Shape})
				names[x.Name] = true
				if x.Name == "blk.0.attn_q.weight" || x.Name == "blk.0.attn_k.weight" {
					require.Equal(t, c.turned, len(x.Views[0].Dims) > 2, "rows lie as transformers has them, or pairs side by side")
				}
			}
			p, err := arch.Record(plan.Meta, func(name string) bool { return names[name] }, arch.Options{})
			require.NoError(t, err)
			require.Equal(t, c.arch, p.Arch)
			_, err = ir.Bind(p, tensors)
			require.NoError(t, err)
			require.Len(t, p.Weights, len(tensors), "each one is used")
		})
	}
}

// tensorsOf reads names, each with a shape.
func tensorsOf(t *testing.T, prefix, list string) []element.Tensor {
	var out []element.Tensor
	for one := range strings.SplitSeq(list, ";") {
		fields := strings.Fields(one)
		if len(fields) == 0 {
			continue
		}
		x := element.Tensor{Name: prefix + fields[0], Type: element.F32}
		for _, d := range fields[1:] {
			n := 0
			_, err := fmt.Sscan(d, &n)
			require.NoError(t, err)
			x.Shape = append(x.Shape, n)
		}
		out = append(out, x)
	}
	return out
}
