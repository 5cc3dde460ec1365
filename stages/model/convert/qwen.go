package convert

// qwens are the dense ones and mixtures of experts of Qwen 2 and 3.
func qwens() []family {
	dense := func(arch string, classes ...string) family {
		return family{arch: arch, classes: classes, prefixes: usualPrefixes(), keys: poolingKey}
	}
	mixture := func(arch string, classes ...string) family {
		return family{arch: arch, classes: classes, prefixes: usualPrefixes(), keys: qwenExpertKeys}
	}
	return []family{
		dense("qwen2", "Qwen2ForCausalLM", "Qwen2Model"),
		dense("qwen3", "Qwen3ForCausalLM", "Qwen3Model"),
		mixture("qwen2moe", "Qwen2MoeForCausalLM"),
		mixture("qwen3moe", "Qwen3MoeForCausalLM"),
		{arch: "qwen2vl", classes: []string{"Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"},
			prefixes: usualPrefixes(), keys: qwenSectionKeys},
		{arch: "qwen3vl", classes: []string{"Qwen3VLForConditionalGeneration"}, prefixes: usualPrefixes(), keys: qwenDeepKeys},
		{arch: "qwen3vlmoe", classes: []string{"Qwen3VLMoeForConditionalGeneration"}, prefixes: usualPrefixes(),
			keys: func(c *converter) { qwenExpertKeys(c); qwenDeepKeys(c) }},
	}
}

func qwenExpertKeys(c *converter) {
	c.countOf("expert_feed_forward_length", "moe_intermediate_size")
	c.countOf("expert_shared_feed_forward_length", "shared_expert_intermediate_size")
}

// qwenSectionKeys checks that positions have axes: a model that sees has pictures at places in two dimensions.
func qwenSectionKeys(c *converter) {
	if len(c.rope().numbers("mrope_section")) < 3 {
		c.config.faultf("rope_scaling.mrope_section is missing, want how many pairs turn by time, lines and columns")
	}
}

// qwenDeepKeys writes besides after how many layers rows of pictures are added.
func qwenDeepKeys(c *converter) {
	qwenSectionKeys(c)
	c.count("n_deepstack_layers", len(c.config.object("vision_config").list("deepstack_visual_indexes")))
}
