package convert

// granites are IBM's: Llama with multipliers, dense and as mixtures of experts.
func granites() []family {
	names := llamaNames()
	names["layers.*.block_sparse_moe.router.layer"] = as("blk.*.ffn_gate_inp")
	names["layers.*.block_sparse_moe.input_linear"] = by("blk.*.", gateUpHalves)
	names["layers.*.block_sparse_moe.input_linear.weight"] = by("blk.*.", gateUpHalves)
	names["layers.*.block_sparse_moe.output_linear"] = as("blk.*.ffn_down_exps")
	names["layers.*.shared_mlp.input_linear.weight"] = by("blk.*.", gateUpRows("ffn_gate_shexp.weight", "ffn_up_shexp.weight"))
	names["layers.*.shared_mlp.output_linear"] = as("blk.*.ffn_down_shexp")
	one := func(arch string, keys func(*converter), classes ...string) family {
		return family{arch: arch, classes: classes, prefixes: usualPrefixes(), names: names, usual: graniteKeys, keys: keys,
			extra: llama3Factors, vocab: llamaVocabulary, pre: "refact"}
	}
	return []family{
		one("granite", nil, "GraniteForCausalLM"),
		one("granitemoe", func(c *converter) {
			c.countOf("expert_shared_feed_forward_length", "shared_intermediate_size")
		}, "GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"),
	}
}

func graniteKeys(c *converter) {
	delete(c.config.values, "head_dim") // these models have none of their own
	c.usualKeys()
	llamaKeys(c)
	for _, k := range [][2]string{{"attention.scale", "attention_multiplier"}, {"embedding_scale", "embedding_multiplier"},
		{"residual_scale", "residual_multiplier"}, {"logit_scale", "logits_scaling"}} {
		if x, ok := c.config.float(k[1]); ok && x != 0 {
			c.number(k[0], x)
		}
	}
}
