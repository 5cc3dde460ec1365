package convert

// newer are families that are compared with llama.cpp alone: their folders have no reference, but their names and
// shapes are what their architectures ask for.
func newer() []family {
	return []family{
		{arch: "lfm2moe", classes: []string{"Lfm2MoeForCausalLM"}, prefixes: usualPrefixes(), usual: lfm2MoEKeys, pre: "lfm2",
			names: lfm2MoENames()},
		{arch: "maincoder", classes: []string{"MaincoderForCausalLM"}, prefixes: usualPrefixes(), keys: turnsWholeHeads},
		{arch: "minimax-m2", classes: []string{"MiniMaxM2ForCausalLM"}, prefixes: usualPrefixes(), keys: minimaxKeys,
			names: map[string]rule{
				"layers.*.block_sparse_moe.gate":                    as("blk.*.ffn_gate_inp"),
				"layers.*.block_sparse_moe.e_score_correction_bias": as("blk.*.exp_probs_b.bias"),
				"layers.*.block_sparse_moe.experts.*.w1":            as("blk.*.ffn_gate_exps"),
				"layers.*.block_sparse_moe.experts.*.w2":            as("blk.*.ffn_down_exps"),
				"layers.*.block_sparse_moe.experts.*.w3":            as("blk.*.ffn_up_exps"),
			}},
		{arch: "mistral3", classes: []string{"Ministral3ForCausalLM"}, prefixes: usualPrefixes(), names: llamaNames(),
			keys: ministralKeys, extra: llama3Factors, vocab: llamaVocabulary},
		{arch: "nemotron", classes: []string{"NemotronForCausalLM"}, prefixes: usualPrefixes(), keys: nemotronKeys,
			names: map[string]rule{ // LayerNorms that multiply by 1 + w
				"norm.weight":                              by("output_norm.weight", plus1),
				"layers.*.input_layernorm.weight":          by("blk.*.attn_norm.weight", plus1),
				"layers.*.post_attention_layernorm.weight": by("blk.*.ffn_norm.weight", plus1),
			}},
		{arch: "orion", classes: []string{"OrionForCausalLM"}, prefixes: usualPrefixes(), keys: func(c *converter) {
			c.number("attention.layer_norm_epsilon", c.config.floatOr(1e-5, "rms_norm_eps"))
		}},
		{arch: "pangu-embedded", classes: []string{"PanguEmbeddedForCausalLM"}, prefixes: usualPrefixes(),
			keys: turnsWholeHeads},
	}
}

func turnsWholeHeads(c *converter) { c.count("rope.dimension_count", c.headDim()) }

// lfm2MoENames are LFM2's, and those of experts.
func lfm2MoENames() map[string]rule {
	names := lfm2Names()
	for from, to := range map[string]rule{
		"layers.*.feed_forward.gate":                 as("blk.*.ffn_gate_inp"),
		"layers.*.feed_forward.expert_bias":          as("blk.*.exp_probs_b.bias"),
		"layers.*.feed_forward.experts.*.w1":         as("blk.*.ffn_gate_exps"),
		"layers.*.feed_forward.experts.*.w2":         as("blk.*.ffn_down_exps"),
		"layers.*.feed_forward.experts.*.w3":         as("blk.*.ffn_up_exps"),
		"layers.*.feed_forward.experts.gate_up_proj": by("blk.*.", gateUpHalves),
		"layers.*.feed_forward.experts.down_proj":    as("blk.*.ffn_down_exps.weight"),
	} {
		names[from] = to
	}
	return names
}

// lfm2MoEKeys are LFM2's, whose dense layers are as wide as the configuration says.
func lfm2MoEKeys(c *converter) {
	const sigmoid = 2 // as llama.cpp numbers it
	lfm2Keys(c)
	c.count("feed_forward_length", c.config.need("intermediate_size"))
	c.count("expert_feed_forward_length", c.config.need("moe_intermediate_size"))
	c.count("leading_dense_block_count", c.config.int("num_dense_layers"))
	c.count("expert_gating_func", sigmoid)
	c.numberOf("expert_weights_scale", "routed_scaling_factor")
}

func minimaxKeys(c *converter) {
	const sigmoid = 2 // as llama.cpp numbers it
	c.count("expert_feed_forward_length", c.config.need("intermediate_size"))
	c.count("expert_gating_func", sigmoid)
	turned := c.rope().floatOr(1, "partial_rotary_factor") * float64(c.headDim())
	c.count("rope.dimension_count", c.config.intOr(int(turned), "rotary_dim"))
}

// ministralKeys say besides how YaRN leaves scores alone, and by how much queries sharpen with their position.
func ministralKeys(c *converter) {
	llamaKeys(c)
	if x, ok := c.fullRope().float("mscale_all_dim"); ok {
		c.number("rope.scaling.yarn_log_multiplier", x)
	}
	if x, ok := c.fullRope().float("llama_4_scaling_beta"); ok {
		c.number("attention.temperature_scale", x)
	}
}

func nemotronKeys(c *converter) {
	c.number("attention.layer_norm_epsilon", c.config.floatOr(1e-5, "norm_eps"))
	c.count("rope.dimension_count", int(c.rope().floatOr(0.5, "partial_rotary_factor")*float64(c.headDim())))
}
