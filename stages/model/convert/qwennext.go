package convert

import (
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

// qwenNexts are Qwen3-Next and Qwen 3.5: most layers have a recurrent state, of gated delta nets.
func qwenNexts() []family {
	names := func(linear map[string]rule) map[string]rule {
		all := map[string]rule{
			"norm":                               by("output_norm", qwenNorm),
			"layers.*.input_layernorm":           by("blk.*.attn_norm", qwenNorm),
			"layers.*.post_attention_layernorm":  by("blk.*.post_attention_norm", qwenNorm),
			"layers.*.self_attn.q_norm":          by("blk.*.attn_q_norm", qwenNorm),
			"layers.*.self_attn.k_norm":          by("blk.*.attn_k_norm", qwenNorm),
			"layers.*.linear_attn.norm":          as("blk.*.ssm_norm"),
			"layers.*.linear_attn.A_log":         by("blk.*.ssm_a", tiledHeads(0, 1, NegExp)),
			"layers.*.linear_attn.dt_bias":       by("blk.*.ssm_dt.bias", tiledHeads(0, 1, Same)),
			"layers.*.linear_attn.conv1d.weight": by("blk.*.ssm_conv1d.weight", tiledConvolution),
			"layers.*.linear_attn.out_proj":      by("blk.*.ssm_out", tiledHeads(1, 0, Same)),
		}
		return joined(all, aheadNames(plus1), linear)
	}
	next := names(map[string]rule{ // here values stay beside their keys
		"layers.*.linear_attn.A_log":               by("blk.*.ssm_a", negExp),
		"layers.*.linear_attn.dt_bias":             as("blk.*.ssm_dt.bias"),
		"layers.*.linear_attn.conv1d.weight":       by("blk.*.ssm_conv1d.weight", squeezed),
		"layers.*.linear_attn.out_proj":            as("blk.*.ssm_out"),
		"layers.*.linear_attn.in_proj_ba":          as("blk.*.ssm_ba"),
		"layers.*.linear_attn.in_proj_qkvz.weight": by("blk.*.", groupedQKVZ),
	})
	tiled := names(map[string]rule{
		"layers.*.linear_attn.in_proj_qkv": by("blk.*.attn_qkv", tiledQKV),
		"layers.*.linear_attn.in_proj_z":   by("blk.*.attn_gate", tiledHeads(0, 0, Same)),
		"layers.*.linear_attn.in_proj_a":   by("blk.*.ssm_alpha", tiledHeads(0, 1, Same)),
		"layers.*.linear_attn.in_proj_b":   by("blk.*.ssm_beta", tiledHeads(0, 1, Same)),
	})
	return []family{
		{arch: "qwen3next", classes: []string{"Qwen3NextForCausalLM"}, prefixes: usualPrefixes(), names: next, ahead: true,
			keys: qwenNextKeys, pre: "qwen2"},
		{arch: "qwen35", classes: []string{"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"},
			prefixes: usualPrefixes(), names: tiled, ahead: true, keys: qwen35Keys, pre: "qwen35"},
		{arch: "qwen35moe", classes: []string{"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"},
			prefixes: usualPrefixes(), names: tiled, ahead: true, keys: qwen35Keys, pre: "qwen35"},
	}
}

// deltaHeads returns the sizes of gated delta nets: heads of keys, value heads for each of them, and the length of
// either.
func (c *converter) deltaHeads() (keys, perKey, keyDim, valueDim int) {
	keys, values := c.config.need("linear_num_key_heads"), c.config.need("linear_num_value_heads")
	return keys, max(values/keys, 1), c.config.need("linear_key_head_dim"), c.config.need("linear_value_head_dim")
}

// tiled orders a dimension of value heads of so many elements as ggml repeats keys: the first of every key, then the
// second of every key.
func (c *converter) tiled(v View, d, dim int) View {
	keys, perKey, _, _ := c.deltaHeads()
	return v.split(d, keys, perKey, dim).swap(d, d+1)
}

// tiledHeads is tiled for a whole tensor; dim 0 stands for the length of a value head.
func tiledHeads(d, dim int, change Change) func(*converter, *source) {
	return func(c *converter, s *source) {
		if dim == 0 {
			_, _, _, dim := c.deltaHeads()
			c.emit(s.to, []View{c.tiled(whole(s.Tensor), d, dim)}, change, s.Shape...)
			return
		}
		c.emit(s.to, []View{c.tiled(whole(s.Tensor), d, dim)}, change, s.Shape...)
	}
}

// tiledQKV leaves queries and keys, and orders values.
func tiledQKV(c *converter, s *source) {
	c.emit(s.to, c.tiledValues(whole(s.Tensor)), Same, s.Shape...)
}

// tiledConvolution is tiledQKV for the convolution over them: [channels][1][taps].
func tiledConvolution(c *converter, s *source) {
	v := taps(s)
	c.emit(s.to, c.tiledValues(v), Same, v.shape()...)
}

func (c *converter) tiledValues(v View) []View {
	keys, _, keyDim, valueDim := c.deltaHeads()
	v.dims(1)
	before := 2 * keys * keyDim
	return []View{v.narrow(0, 0, before), c.tiled(v.narrow(0, before, int(v.Dims[0].N)-before), 0, valueDim)}
}

// groupedQKVZ takes apart what lies key by key: [keys][query, key, values, gates][width].
func groupedQKVZ(c *converter, s *source) {
	keys, perKey, keyDim, valueDim := c.deltaHeads()
	values := perKey * valueDim
	v := whole(s.Tensor).split(0, keys, 2*(keyDim+values))
	v.dims(3)
	width := int(v.Dims[2].N)
	c.emit(s.to+"attn_qkv.weight", []View{v.narrow(1, 0, keyDim), v.narrow(1, keyDim, keyDim), v.narrow(1, 2*keyDim, values)},
		Same, keys*(2*keyDim+values), width)
	c.emit(s.to+"attn_gate.weight", []View{v.narrow(1, 2*keyDim+values, values)}, Same, keys*values, width)
}

func negExp(c *converter, s *source) { c.emit(s.to, []View{whole(s.Tensor)}, NegExp) }

// squeezed drops the dimension of one that convolutions have.
func squeezed(c *converter, s *source) { c.emit(s.to, []View{taps(s)}, Same) }

// taps is a convolution without its dimension of one: [channels][1][taps], or as MLX has it [channels][taps][1].
func taps(s *source) View {
	if mlxTaps(s.Tensor) {
		return whole(s.Tensor).pick(2, 0)
	}
	return whole(s.Tensor).pick(1, 0)
}

func mlxTaps(t element.Tensor) bool { return len(t.Shape) == 3 && t.Shape[2] == 1 && t.Shape[1] > 1 }

// qwenNorm is for norms that multiply by 1 + w. MLX adds the 1 when it writes a folder, and turns convolutions, by
// which its folders are known.
func qwenNorm(c *converter, s *source) {
	mlx := slices.ContainsFunc(c.folder.Tensors, func(t element.Tensor) bool {
		return strings.HasSuffix(t.Name, ".conv1d.weight") && mlxTaps(t)
	})
	if mlx {
		keep(c, s)
	} else {
		plus1(c, s)
	}
}

func qwenNextKeys(c *converter) {
	qwenExpertKeys(c)
	keys, perKey, keyDim, valueDim := c.deltaHeads()
	c.count("ssm.conv_kernel", c.config.need("linear_conv_kernel_dim"))
	c.count("ssm.state_size", keyDim)
	c.count("ssm.group_count", keys)
	c.count("ssm.time_step_rank", keys*perKey)
	c.count("ssm.inner_size", valueDim*keys*perKey)
	c.count("full_attention_interval", c.fullInterval())
	if c.next > 0 {
		c.count("nextn_predict_layers", c.next)
	}
	c.partialRope(0.25)
}

// fullInterval is the period of layers that attend to everything: the last one of every so many layers does.
func (c *converter) fullInterval() int {
	for i, kind := range c.config.strings("layer_types") {
		if kind == "full_attention" {
			return i + 1
		}
	}
	return c.config.intOr(4, "full_attention_interval")
}

func qwen35Keys(c *converter) {
	qwenNextKeys(c)
	if !c.rope().has("mrope_section") {
		c.sections([]float64{11, 11, 10})
	}
}
