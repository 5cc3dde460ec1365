package convert

// deepseeks are DeepSeek V2, V3 and R1: attention through a small latent vector.
func deepseeks() []family {
	return []family{{
		arch: "deepseek2", classes: []string{"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM"}, prefixes: usualPrefixes(),
		usual: deepseekKeys, pre: "deepseek-v3", ahead: true,
		names: joined(aheadNames(keep), map[string]rule{
			"layers.*.self_attn.q_a_proj":               as("blk.*.attn_q_a"),
			"layers.*.self_attn.q_a_layernorm":          as("blk.*.attn_q_a_norm"),
			"layers.*.self_attn.q_b_proj":               as("blk.*.attn_q_b"),
			"layers.*.self_attn.kv_a_proj_with_mqa":     as("blk.*.attn_kv_a_mqa"),
			"layers.*.self_attn.kv_a_layernorm":         as("blk.*.attn_kv_a_norm"),
			"layers.*.self_attn.kv_b_proj":              by("blk.*.", latentHalves),
			"layers.*.self_attn.kv_b_proj.weight":       by("blk.*.", latentHalves),
			"layers.*.mlp.gate.e_score_correction_bias": as("blk.*.exp_probs_b.bias"),
			"layers.*.mlp.shared_experts.gate_proj":     as("blk.*.ffn_gate_shexp"),
			"layers.*.mlp.shared_experts.up_proj":       as("blk.*.ffn_up_shexp"),
			"layers.*.mlp.shared_experts.down_proj":     as("blk.*.ffn_down_shexp"),
		}),
	}}
}

// latentHalves takes apart what makes keys and values of the latent vector: [heads][key, value][rank]. Keys are stored
// the other way round, because queries are multiplied by them first.
func latentHalves(c *converter, s *source) {
	key, value := c.config.need("qk_nope_head_dim"), c.config.need("v_head_dim")
	v := whole(s.Tensor).split(0, c.heads(), key+value)
	c.emit(s.to+"attn_k_b.weight", []View{v.narrow(1, 0, key).swap(1, 2)}, Same)
	c.emit(s.to+"attn_v_b.weight", []View{v.narrow(1, key, value)}, Same)
}

func deepseekKeys(c *converter) {
	o := c.config
	delete(o.values, "head_dim")
	c.usualKeys()
	rank, nope, rope := o.intOr(512, "kv_lora_rank"), o.need("qk_nope_head_dim"), o.need("qk_rope_head_dim")
	c.count("attention.head_count_kv", 1) // all heads share the latent vector
	c.number("attention.layer_norm_rms_epsilon", o.floatOr(1e-6, "rms_norm_eps"))
	dense := 0
	if !o.has("n_routed_experts") {
		dense = c.layers()
	}
	c.count("leading_dense_block_count", o.intOr(dense, "first_k_dense_replace"))
	c.count("vocab_size", o.need("vocab_size"))
	if c.next > 0 {
		c.count("nextn_predict_layers", c.next)
	}
	c.countOf("attention.q_lora_rank", "q_lora_rank")
	c.count("attention.kv_lora_rank", rank)
	c.count("attention.key_length", rank+rope)
	c.count("attention.value_length", rank)
	c.count("attention.key_length_mla", nope+rope)
	c.count("attention.value_length_mla", o.need("v_head_dim"))
	c.count("expert_feed_forward_length", o.need("moe_intermediate_size", "intermediate_size"))
	c.count("expert_shared_count", o.int("n_shared_experts"))
	c.numberOf("expert_weights_scale", "routed_scaling_factor")
	if norm, _ := o.truth("norm_topk_prob"); norm {
		c.set("expert_weights_norm", true)
	}
	c.count("rope.dimension_count", rope)
	if x, ok := c.rope().float("mscale_all_dim"); ok {
		c.set("rope.scaling.yarn_log_multiplier", float32(0.1*x))
	}
}
