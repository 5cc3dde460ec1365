package convert

import "math"

// ernies are Baidu's ERNIE 4.5 and HunYuan's models of Tencent.
func ernies() []family {
	ernie := append(usualPrefixes(), "ernie.")
	fused := map[string]rule{
		"layers.*.self_attn.qkv_proj.weight": by("blk.*.", ernieQKV),
		"layers.*.mlp.up_gate_proj.weight":   by("blk.*.", gateUpRows("ffn_gate.weight", "ffn_up.weight")),
		"layers.*.mlp.moe_statics.e_score_correction_bias": by("blk.*.exp_probs_b.bias", func(c *converter, s *source) {
			c.emit(s.to, []View{whole(s.Tensor)}, Same, int(whole(s.Tensor).count()))
		}),
		"layers.*.mlp.shared_experts.gate_proj": as("blk.*.ffn_gate_shexp"),
		"layers.*.mlp.shared_experts.up_proj":   as("blk.*.ffn_up_shexp"),
		"layers.*.mlp.shared_experts.down_proj": as("blk.*.ffn_down_shexp"),
		"mtp_block.*.*":                         {},
	}
	norms := map[string]rule{
		"layers.*.self_attn.query_layernorm": as("blk.*.attn_q_norm"),
		"layers.*.self_attn.key_layernorm":   as("blk.*.attn_k_norm"),
		"layers.*.mlp.gate.wg":               as("blk.*.ffn_gate_inp"),
		"layers.*.mlp.shared_mlp.gate_proj":  as("blk.*.ffn_gate_shexp"),
		"layers.*.mlp.shared_mlp.up_proj":    as("blk.*.ffn_up_shexp"),
		"layers.*.mlp.shared_mlp.down_proj":  as("blk.*.ffn_down_shexp"),
	}
	return []family{
		{arch: "ernie4_5", classes: []string{"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"}, prefixes: ernie, names: fused,
			vocab: llamaVocabulary},
		{arch: "ernie4_5-moe", classes: []string{"Ernie4_5_MoeForCausalLM"}, prefixes: ernie, names: fused,
			keys: ernieExpertKeys, vocab: llamaVocabulary},
		{arch: "hunyuan-dense", classes: []string{"HunYuanDenseV1ForCausalLM"}, prefixes: usualPrefixes(), names: norms,
			pre: "hunyuan-dense", keys: hunyuanRope, vocab: hunyuanVocabulary},
		{arch: "hunyuan-moe", classes: []string{"HunYuanMoEV1ForCausalLM"}, prefixes: usualPrefixes(), names: norms,
			pre: "hunyuan", keys: hunyuanExpertKeys},
	}
}

// ernieQKV takes queries, keys and values apart, which lie one behind the other.
func ernieQKV(c *converter, s *source) {
	v, dim := whole(s.Tensor), c.headDim()
	q, kv := c.heads()*dim, c.kvHeads()*dim
	c.emit(s.to+"attn_q.weight", []View{v.narrow(0, 0, q)}, Same)
	c.emit(s.to+"attn_k.weight", []View{v.narrow(0, q, kv)}, Same)
	c.emit(s.to+"attn_v.weight", []View{v.narrow(0, q+kv, kv)}, Same)
}

func ernieExpertKeys(c *converter) {
	o := c.config
	c.count("expert_count", o.need("moe_num_experts"))
	c.count("expert_used_count", o.need("moe_k"))
	c.count("interleave_moe_layer_step", o.intOr(1, "moe_layer_interval"))
	c.count("leading_dense_block_count", o.int("moe_layer_start_index"))
	c.countOf("expert_feed_forward_length", "moe_intermediate_size")
	if o.has("moe_num_shared_experts") {
		shared := o.int("moe_num_shared_experts")
		c.count("expert_shared_count", shared)
		if shared > 0 {
			c.count("expert_shared_feed_forward_length", shared*o.need("moe_intermediate_size"))
		}
	}
}

func hunyuanExpertKeys(c *converter) {
	first := func(key string) int { // one number, or the same for each layer
		if list := c.config.numbers(key); len(list) > 0 {
			return int(list[0])
		}
		return c.config.int(key)
	}
	c.count("expert_shared_feed_forward_length", c.config.need("intermediate_size"))
	c.count("expert_feed_forward_length", first("moe_intermediate_size"))
	c.count("expert_used_count", first("moe_topk"))
	c.count("expert_shared_count", first("num_shared_expert"))
	hunyuanRope(c)
}

// hunyuanRope is how these models reach longer contexts: by a larger base.
func hunyuanRope(c *converter) {
	r := c.rope()
	moe, dynamic := c.family.arch == "hunyuan-moe", r.string("rope_type") == "dynamic"
	if !dynamic && (moe || !r.has("alpha")) {
		return
	}
	alpha, dim := r.floatOr(1000, "alpha"), float64(c.headDim())
	if !moe {
		alpha = r.floatOr(50, "alpha")
	}
	c.number("rope.freq_base", r.floatOr(10000, "rope_theta")*math.Pow(alpha, dim/(dim-2)))
	c.set("rope.scaling.type", "none")
	c.number("rope.scaling.factor", 1)
	if dynamic {
		const context = 256 << 10 // what the base is made for; config.json has less
		c.count("rope.scaling.original_context_length", context)
		c.count("context_length", context)
	}
}

// hunyuanVocabulary corrects what ends a text and a turn: config.json has the one that ends texts under another name,
// and generation_config.json begins its list with the one that ends a turn.
func hunyuanVocabulary(c *converter) error {
	if err := c.vocabulary(); err != nil {
		return err
	}
	if c.config.has("eod_token_id") {
		c.specialID("eos", c.config.int("eod_token_id"))
	}
	generation, err := parseObject("generation_config.json", c.folder.Texts["generation_config.json"])
	if err != nil {
		return err
	}
	if ends := generation.numbers("eos_token_id"); len(ends) > 1 && ends[0] >= 0 && ends[0] < mostVocab {
		c.specialID("eot", int(ends[0]))
	}
	return generation.err()
}
