package convert

// coheres are Command-R and Command-R7B: attention and feed-forward side by side.
func coheres() []family {
	return []family{
		{arch: "command-r", classes: []string{"CohereForCausalLM"}, prefixes: usualPrefixes(), pre: "command-r",
			usual: func(c *converter) {
				if v, _ := c.config.get("model_max_length"); v != nil { // the other number is that of the first training
					c.config.values["max_position_embeddings"] = v
				}
				c.usualKeys()
				c.number("logit_scale", c.config.floatOr(0.0625, "logit_scale"))
				c.set("rope.scaling.type", "none")
			}},
		{arch: "cohere2", classes: []string{"Cohere2ForCausalLM"}, prefixes: usualPrefixes(), pre: "command-r",
			keys: func(c *converter) {
				c.number("logit_scale", c.config.floatOr(0.0625, "logit_scale"))
				c.count("attention.sliding_window", c.config.need("sliding_window"))
				c.count("vocab_size", c.config.need("vocab_size"))
				c.count("rope.dimension_count", int(c.config.floatOr(1, "rotary_pct")*float64(c.width()/c.heads())))
				c.set("rope.scaling.type", "none")
			}},
	}
}
