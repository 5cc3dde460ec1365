package convert

// llamas are Llama and what its files hold under the same name: Mistral, Mixtral.
func llamas() []family {
	return []family{{
		arch: "llama",
		classes: []string{"LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM", "MixtralForCausalLM", "LlamaModel",
			"Mistral3ForConditionalGeneration", "LlavaForConditionalGeneration"},
		prefixes: usualPrefixes(),
		names:    llamaNames(),
		keys:     llamaKeys,
		extra:    llama3Factors,
		vocab:    llamaVocabulary,
	}}
}

func llamaNames() map[string]rule {
	return map[string]rule{
		"layers.*.self_attn.q_proj":                      by("blk.*.attn_q", rotated((*converter).heads)),
		"layers.*.self_attn.k_proj":                      by("blk.*.attn_k", rotated((*converter).kvHeads)),
		"layers.*.block_sparse_moe.gate":                 as("blk.*.ffn_gate_inp"),
		"layers.*.block_sparse_moe.experts.*.w1":         as("blk.*.ffn_gate_exps"),
		"layers.*.block_sparse_moe.experts.*.w2":         as("blk.*.ffn_down_exps"),
		"layers.*.block_sparse_moe.experts.*.w3":         as("blk.*.ffn_up_exps"),
		"layers.*.block_sparse_moe.switch_mlp.gate_proj": as("blk.*.ffn_gate_exps"), // MLX has experts in one piece
		"layers.*.block_sparse_moe.switch_mlp.up_proj":   as("blk.*.ffn_up_exps"),
		"layers.*.block_sparse_moe.switch_mlp.down_proj": as("blk.*.ffn_down_exps"),
		"layers.*.self_attn.rotary_emb.inv_freq":         {},
	}
}

// llamaNamesAsTheyLie are Llama's for models whose heads are turned as transformers turns them.
func llamaNamesAsTheyLie() map[string]rule {
	names := llamaNames()
	delete(names, "layers.*.self_attn.q_proj")
	delete(names, "layers.*.self_attn.k_proj")
	return names
}

func llamaKeys(c *converter) {
	c.countOf("vocab_size", "vocab_size")
	c.count("rope.dimension_count", c.headDim())
}

// llamaVocabulary says besides whether a blank is put in front of texts.
func llamaVocabulary(c *converter) error {
	settings, err := parseObject("tokenizer_config.json", c.folder.Texts["tokenizer_config.json"])
	if err != nil {
		return err
	}
	if add, set := settings.truth("add_prefix_space"); set {
		c.meta.Set("tokenizer.ggml.add_space_prefix", add)
	}
	return c.vocabulary()
}
