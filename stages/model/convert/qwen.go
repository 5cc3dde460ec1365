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
	}
}

func qwenExpertKeys(c *converter) {
	c.countOf("expert_feed_forward_length", "moe_intermediate_size")
	c.countOf("expert_shared_feed_forward_length", "shared_expert_intermediate_size")
}
