package convert

import "maps"

// gemmas are Gemma 1 to 3: norms multiply by 1 + w, and the output is the embeddings.
func gemmas() []family {
	names := map[string]rule{
		"lm_head":                             {},
		"norm":                                by("output_norm", plus1),
		"layers.*.input_layernorm":            by("blk.*.attn_norm", plus1),
		"layers.*.self_attn.q_norm":           by("blk.*.attn_q_norm", plus1),
		"layers.*.self_attn.k_norm":           by("blk.*.attn_k_norm", plus1),
		"layers.*.post_attention_layernorm":   by("blk.*.post_attention_norm", plus1),
		"layers.*.pre_feedforward_layernorm":  by("blk.*.ffn_norm", plus1),
		"layers.*.post_feedforward_layernorm": by("blk.*.post_ffw_norm", plus1),
	}
	first := maps.Clone(names)
	first["layers.*.post_attention_layernorm"] = by("blk.*.ffn_norm", plus1)
	return []family{
		{arch: "gemma", classes: []string{"GemmaForCausalLM"}, prefixes: usualPrefixes(), names: first, usual: gemmaKeys,
			vocab: gemmaVocabulary},
		{arch: "gemma2", classes: []string{"Gemma2ForCausalLM"}, prefixes: usualPrefixes(), names: names, usual: gemma2Keys,
			vocab: withoutBlank},
		{arch: "gemma3", classes: []string{"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"}, prefixes: usualPrefixes(),
			names: names, keys: gemma3Keys, vocab: withoutBlank},
	}
}

// gemmaKeys writes the keys of Gemma 1 and 2.
func gemmaKeys(c *converter) {
	c.count("context_length", c.config.need("max_position_embeddings"))
	c.count("embedding_length", c.width())
	c.count("block_count", c.layers())
	c.count("feed_forward_length", c.config.need("intermediate_size"))
	c.count("attention.head_count", c.heads())
	c.count("attention.head_count_kv", c.kvHeads())
	c.number("attention.layer_norm_rms_epsilon", c.config.floatOr(1e-6, "rms_norm_eps"))
	c.count("attention.key_length", c.headDim())
	c.count("attention.value_length", c.headDim())
	c.meta.Set("general.file_type", c.options.FileType)
}

func gemma2Keys(c *converter) {
	gemmaKeys(c)
	c.number("attn_logit_softcapping", c.config.floatOr(50, "attn_logit_softcapping"))
	c.number("final_logit_softcapping", c.config.floatOr(30, "final_logit_softcapping"))
	c.count("attention.sliding_window", c.config.need("sliding_window"))
}

// gemma3Keys writes the keys of Gemma 3, with the defaults of transformers that small configurations leave out.
func gemma3Keys(c *converter) {
	c.count("context_length", c.config.intOr(131072, "max_position_embeddings"))
	c.count("attention.head_count", c.config.intOr(8, "num_attention_heads"))
	c.number("attention.layer_norm_rms_epsilon", c.config.floatOr(1e-6, "rms_norm_eps"))
	c.count("attention.key_length", c.config.intOr(256, "head_dim"))
	c.count("attention.value_length", c.config.intOr(256, "head_dim"))
	c.number("rope.freq_base", c.fullRope().floatOr(1e6, "rope_theta"))
	if !c.meta.Has(c.family.arch + ".rope.freq_base_swa") {
		c.number("rope.freq_base_swa", 10000)
	}
	if x, ok := c.config.float("final_logit_softcapping"); ok && x != 0 {
		c.number("final_logit_softcapping", x)
	}
	if c.config.int("sliding_window_pattern") != 1 {
		c.count("attention.sliding_window", c.config.need("sliding_window"))
	}
	c.count("attention.head_count_kv", c.config.intOr(4, "num_key_value_heads"))
	const period = 6 // which readers assume
	local, unusual := []bool(nil), false
	for l, kind := range c.config.strings("layer_types") {
		local = append(local, kind == "sliding_attention")
		unusual = unusual || local[l] != ((l+1)%period != 0)
	}
	if unusual {
		c.set("attention.sliding_window_pattern", local)
	}
}

// withoutBlank is the vocabulary of models that put no blank in front of a text.
func withoutBlank(c *converter) error {
	err := c.vocabulary()
	if model, _ := c.meta.String("tokenizer.ggml.model"); model == "llama" {
		c.meta.Set("tokenizer.ggml.add_space_prefix", false)
	}
	return err
}

// gemmaVocabulary names the tokens of CodeGemma that fill a middle, which all files of the family have.
func gemmaVocabulary(c *converter) error {
	if err := withoutBlank(c); err != nil {
		return err
	}
	for _, special := range []struct {
		name string
		id   int
	}{{"prefix", 67}, {"suffix", 69}, {"middle", 68}, {"eot", 107}} {
		if special.id < c.rows() {
			c.specialID(special.name, special.id)
		}
	}
	return nil
}
