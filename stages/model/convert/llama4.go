package convert

// llama4 is the text part of Llama 4: matrices of experts lie the other way round, gates before what they multiply.
func llama4() family {
	return family{
		arch: "llama4", classes: []string{"Llama4ForCausalLM", "Llama4ForConditionalGeneration"}, prefixes: usualPrefixes(),
		pre: "llama4", extra: llama3Factors, vocab: llamaVocabulary,
		names: map[string]rule{
			"layers.*.feed_forward.gate_proj":               as("blk.*.ffn_gate"),
			"layers.*.feed_forward.up_proj":                 as("blk.*.ffn_up"),
			"layers.*.feed_forward.down_proj":               as("blk.*.ffn_down"),
			"layers.*.feed_forward.router":                  as("blk.*.ffn_gate_inp"),
			"layers.*.feed_forward.shared_expert.gate_proj": as("blk.*.ffn_gate_shexp"),
			"layers.*.feed_forward.shared_expert.up_proj":   as("blk.*.ffn_up_shexp"),
			"layers.*.feed_forward.shared_expert.down_proj": as("blk.*.ffn_down_shexp"),
			"layers.*.feed_forward.experts.gate_up_proj":    by("blk.*.", transposedHalves),
			"layers.*.feed_forward.experts.down_proj":       by("blk.*.ffn_down_exps.weight", transposedExperts),
		},
		usual: func(c *converter) {
			experts := c.config.need("intermediate_size")
			c.config.values["intermediate_size"] = c.config.values["intermediate_size_mlp"]
			c.usualKeys()
			llamaKeys(c)
			c.count("interleave_moe_layer_step", c.config.need("interleave_moe_layer_step"))
			c.count("expert_feed_forward_length", experts)
		},
	}
}

// transposedHalves takes gate and up apart: [experts][width][gate, up].
func transposedHalves(c *converter, s *source) {
	v := whole(s.Tensor).split(2, 2, 0).swap(1, 3)
	c.emit(s.to+"ffn_gate_exps.weight", []View{v.pick(2, 0)}, Same)
	c.emit(s.to+"ffn_up_exps.weight", []View{v.pick(2, 1)}, Same)
}
