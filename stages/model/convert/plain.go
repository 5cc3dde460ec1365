package convert

// plains are models of earlier years, and of later ones that differ little from them.
func plains() []family {
	return []family{
		{arch: "arcee", classes: []string{"ArceeForCausalLM"}, prefixes: usualPrefixes(), names: llamaNames(),
			keys: llamaKeys, extra: llama3Factors, vocab: llamaVocabulary},
		{arch: "dots1", classes: []string{"Dots1ForCausalLM"}, prefixes: usualPrefixes(), pre: "qwen2", keys: dots1Keys,
			names: map[string]rule{
				"layers.*.mlp.gate.e_score_correction_bias": as("blk.*.exp_probs_b.bias"),
				"layers.*.mlp.shared_experts.gate_proj":     as("blk.*.ffn_gate_shexp"),
				"layers.*.mlp.shared_experts.up_proj":       as("blk.*.ffn_up_shexp"),
				"layers.*.mlp.shared_experts.down_proj":     as("blk.*.ffn_down_shexp"),
			}},
		{arch: "olmo", classes: []string{"OlmoForCausalLM"}, prefixes: usualPrefixes(), names: llamaNames(), pre: "olmo",
			keys: func(c *converter) {
				c.number("attention.layer_norm_epsilon", 1e-5) // of its code: no configuration has it
				c.numberOf("attention.clamp_kqv", "clip_qkv")
			}},
		{arch: "phi2", classes: []string{"PhiForCausalLM"}, prefixes: usualPrefixes(), pre: "phi-2", usual: phi2Keys,
			names: map[string]rule{
				"layers.*.self_attn.dense": as("blk.*.attn_output"),
				"layers.*.mlp.fc1":         as("blk.*.ffn_up"),
				"layers.*.mlp.fc2":         as("blk.*.ffn_down"),
				"final_layernorm":          as("output_norm"),
			}},
	}
}

func dots1Keys(c *converter) {
	const sigmoid = 2
	c.countOf("expert_feed_forward_length", "moe_intermediate_size")
	c.countOf("expert_shared_count", "n_shared_experts")
	c.countOf("leading_dense_block_count", "first_k_dense_replace")
	c.set("expert_gating_func", uint32(sigmoid))
	c.numberOf("expert_weights_scale", "routed_scaling_factor")
	if norm, set := c.config.truth("norm_topk_prob"); set {
		c.set("expert_weights_norm", norm)
	}
}

func phi2Keys(c *converter) {
	partlyRotated(c)
	c.count("attention.head_count_kv", c.kvHeads())
	c.number("attention.layer_norm_epsilon", c.config.floatOr(1e-5, "layer_norm_eps", "layer_norm_epsilon"))
	if x, ok := c.rope().float("rope_theta"); ok {
		c.number("rope.freq_base", x)
	}
	c.meta.Set("general.file_type", c.options.FileType)
}
