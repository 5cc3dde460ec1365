package convert

import "strconv"

// gemma4 has larger heads in the layers that attend to everything, and there turns the first part of each only.
func gemma4() family {
	return family{
		arch: "gemma4", classes: []string{"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"}, prefixes: usualPrefixes(),
		keys: gemma4Keys, extra: gemma4Factors, vocab: gemma4Vocabulary,
		names: map[string]rule{
			"lm_head":                                as("output"),
			"embed_tokens_per_layer":                 as("per_layer_token_embd"),
			"per_layer_model_projection":             as("per_layer_model_proj"),
			"per_layer_projection_norm":              as("per_layer_proj_norm"),
			"layers.*.layer_scalar":                  as("blk.*.layer_output_scale.weight"),
			"layers.*.per_layer_input_gate":          as("blk.*.inp_gate"),
			"layers.*.per_layer_projection":          as("blk.*.proj"),
			"layers.*.post_per_layer_input_norm":     as("blk.*.post_norm"),
			"layers.*.post_attention_layernorm":      as("blk.*.post_attention_norm"),
			"layers.*.pre_feedforward_layernorm":     as("blk.*.ffn_norm"),
			"layers.*.pre_feedforward_layernorm_2":   as("blk.*.pre_ffw_norm_2"),
			"layers.*.post_feedforward_layernorm":    as("blk.*.post_ffw_norm"),
			"layers.*.post_feedforward_layernorm_1":  as("blk.*.post_ffw_norm_1"),
			"layers.*.post_feedforward_layernorm_2":  as("blk.*.post_ffw_norm_2"),
			"layers.*.router.proj":                   as("blk.*.ffn_gate_inp"),
			"layers.*.router.scale":                  as("blk.*.ffn_gate_inp.scale"),
			"layers.*.router.per_expert_scale":       as("blk.*.ffn_down_exps.scale"),
			"layers.*.experts.gate_up_proj":          as("blk.*.ffn_gate_up_exps.weight"),
			"layers.*.experts.down_proj":             as("blk.*.ffn_down_exps.weight"),
			"layers.*.self_attn.rotary_emb.inv_freq": {},
		},
	}
}

// perLayer reads a number of one layer that differs from all others', as transformers 5 writes it.
func (c *converter) perLayer(layer int, key string, otherwise int) int {
	return c.config.object("per_layer_config").object(strconv.Itoa(layer)).intOr(otherwise, key)
}

// fullLayer is the first layer that attends to everything, -1 without one.
func (c *converter) fullLayer() int {
	for i, kind := range c.config.strings("layer_types") {
		if kind == "full_attention" {
			return i
		}
	}
	return -1
}

// fullHead is the length of a head in layers that attend to everything.
func (c *converter) fullHead() int {
	n := c.perLayer(c.fullLayer(), "head_dim", c.config.intOr(c.headDim(), "global_head_dim"))
	if n > mostDim {
		c.config.faultf("heads have %d values, want at most %d", n, mostDim)
		return 1
	}
	return n
}

func gemma4Keys(c *converter) {
	gemma3Keys(c)
	o, layers := c.config, c.layers()
	shared := o.int("num_kv_shared_layers")
	c.count("attention.shared_kv_layers", shared)
	c.count("embedding_length_per_layer_input", o.int("hidden_size_per_layer_input"))
	local, kv, feed := make([]bool, layers), make([]int32, layers), make([]int32, layers)
	types, differ := o.strings("layer_types"), o.has("num_global_key_value_heads")
	for i := range layers {
		local[i] = i < len(types) && types[i] == "sliding_attention"
		heads, width := c.kvHeads(), o.need("intermediate_size")
		if !local[i] {
			heads = c.perLayer(i, "num_key_value_heads", o.intOr(heads, "num_global_key_value_heads"))
		}
		if i >= layers-shared {
			width *= 2
		}
		kv[i], feed[i] = int32(heads), int32(width)
		differ = differ || heads != c.kvHeads()
	}
	c.set("attention.sliding_window_pattern", local)
	c.count("attention.key_length", c.fullHead())
	c.count("attention.value_length", c.fullHead())
	c.count("attention.key_length_swa", c.headDim())
	c.count("attention.value_length_swa", c.headDim())
	c.countOf("expert_feed_forward_length", "expert_intermediate_size", "moe_intermediate_size")
	if double, _ := o.truth("use_double_wide_mlp"); double {
		c.set("feed_forward_length", feed)
	}
	if differ {
		c.set("attention.head_count_kv", kv)
	}
	c.count("rope.dimension_count", c.fullHead())
	c.count("rope.dimension_count_swa", int(float64(c.headDim())*c.rope().floatOr(1, "partial_rotary_factor")))
}

// gemma4Factors keep what is not turned where it is: a factor that makes its angles nothing.
func gemma4Factors(c *converter) {
	const never = 1e30
	dim := c.fullHead()
	turned := int(float64(dim) * c.fullRope().floatOr(0.25, "partial_rotary_factor") / 2)
	factors := make([]float32, dim/2)
	for i := range factors {
		if factors[i] = 1; i >= turned {
			factors[i] = never
		}
	}
	c.constant("rope_freqs.weight", factors)
}

// gemma4Vocabulary merges pieces, not bytes, and by merges, not scores.
func gemma4Vocabulary(c *converter) error {
	if err := c.vocabulary(); err != nil {
		return err
	}
	if model, _ := c.meta.String("tokenizer.ggml.model"); model != "llama" {
		return nil
	}
	t, err := c.tokenizer()
	if err != nil {
		return err
	}
	merges, err := t.merges()
	if err != nil {
		return err
	}
	texts, _ := c.meta.Strings("tokenizer.ggml.tokens")
	kinds, _ := c.meta.Get("tokenizer.ggml.token_type")
	types, _ := kinds.([]int32)
	for i, text := range texts {
		switch text { // these are read by who parses answers
		case "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", `<|"|>`:
			types[i] = userDefined
		}
	}
	c.meta.Set("tokenizer.ggml.model", "gemma4")
	c.meta.Set("tokenizer.ggml.merges", merges)
	c.meta.Set("tokenizer.ggml.add_space_prefix", false)
	c.meta.Set("tokenizer.ggml.add_bos_token", true)
	return nil
}
