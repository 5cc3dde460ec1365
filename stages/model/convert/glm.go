package convert

// glms are GLM-4 and the mixtures of GLM-4.5.
func glms() []family {
	return []family{
		{arch: "glm4", classes: []string{"Glm4ForCausalLM"}, prefixes: usualPrefixes(), pre: "glm4",
			names: map[string]rule{
				"layers.*.post_self_attn_layernorm": as("blk.*.post_attention_norm"),
				"layers.*.post_mlp_layernorm":       as("blk.*.post_ffw_norm"),
				"layers.*.mlp.gate_up_proj":         as("blk.*.ffn_up"),
			},
			keys: func(c *converter) { c.partialRope(0.5) }},
		{arch: "glm4moe", classes: []string{"Glm4MoeForCausalLM"}, prefixes: usualPrefixes(), pre: "glm4", ahead: true,
			names: joined(aheadNames(keep), map[string]rule{
				"layers.*.post_attention_layernorm":         as("blk.*.post_attention_norm"),
				"layers.*.mlp.gate.e_score_correction_bias": as("blk.*.exp_probs_b.bias"),
				"layers.*.mlp.shared_experts.gate_proj":     as("blk.*.ffn_gate_shexp"),
				"layers.*.mlp.shared_experts.up_proj":       as("blk.*.ffn_up_shexp"),
				"layers.*.mlp.shared_experts.down_proj":     as("blk.*.ffn_down_shexp"),
			}),
			keys: glm4moeKeys},
	}
}

func glm4moeKeys(c *converter) {
	const sigmoid = 2
	c.partialRope(0.5)
	c.countOf("expert_feed_forward_length", "moe_intermediate_size")
	c.countOf("expert_shared_count", "n_shared_experts")
	c.countOf("leading_dense_block_count", "first_k_dense_replace")
	c.set("expert_gating_func", uint32(sigmoid))
	c.numberOf("expert_weights_scale", "routed_scaling_factor")
	if norm, set := c.config.truth("norm_topk_prob"); set {
		c.set("expert_weights_norm", norm)
	}
	c.count("nextn_predict_layers", c.next)
}

// partialRope says how much of a head is turned.
func (c *converter) partialRope(otherwise float64) {
	share := c.rope().floatOr(otherwise, "partial_rotary_factor")
	c.count("rope.dimension_count", int(float64(c.headDim())*share))
}
