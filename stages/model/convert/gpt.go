package convert

// gpts are the older families: GPT-2, GPT-NeoX with Pythia, StableLM.
func gpts() []family {
	return []family{
		{arch: "gpt2", classes: []string{"GPT2LMHeadModel"}, prefixes: []string{"transformer."}, noUsualNames: true,
			usual: gpt2Keys, pre: "gpt-2",
			names: map[string]rule{
				"wte":                    as("token_embd"),
				"wpe":                    as("position_embd"),
				"ln_f":                   as("output_norm"),
				"lm_head":                {},
				"h.*.ln_1":               as("blk.*.attn_norm"),
				"h.*.attn.c_attn":        as("blk.*.attn_qkv"),
				"h.*.attn.c_attn.weight": by("blk.*.attn_qkv.weight", transposed),
				"h.*.attn.c_proj":        as("blk.*.attn_output"),
				"h.*.attn.c_proj.weight": by("blk.*.attn_output.weight", transposed),
				"h.*.attn.bias":          {},
				"h.*.attn":               {},
				"h.*.ln_2":               as("blk.*.ffn_norm"),
				"h.*.mlp.c_fc":           as("blk.*.ffn_up"),
				"h.*.mlp.c_fc.weight":    by("blk.*.ffn_up.weight", transposed),
				"h.*.mlp.c_proj":         as("blk.*.ffn_down"),
				"h.*.mlp.c_proj.weight":  by("blk.*.ffn_down.weight", transposed),
			}},
		{arch: "gptneox", classes: []string{"GPTNeoXForCausalLM"}, prefixes: []string{"gpt_neox."}, noUsualNames: true,
			usual: neoxKeys, pre: "olmo",
			names: map[string]rule{
				"embed_in":                           as("token_embd"),
				"embed_out":                          as("output"),
				"final_layer_norm":                   as("output_norm"),
				"layers.*.input_layernorm":           as("blk.*.attn_norm"),
				"layers.*.post_attention_layernorm":  as("blk.*.ffn_norm"),
				"layers.*.attention.query_key_value": by("blk.*.attn_qkv", byHead),
				"layers.*.attention.dense":           as("blk.*.attn_output"),
				"layers.*.mlp.dense_h_to_4h":         as("blk.*.ffn_up"),
				"layers.*.mlp.dense_4h_to_h":         as("blk.*.ffn_down"),
			}},
		{arch: "stablelm", classes: []string{"StableLmForCausalLM", "StableLMEpochForCausalLM"}, prefixes: usualPrefixes(),
			usual: stableKeys, pre: "stablelm2",
			names: map[string]rule{
				"layers.*.self_attn.q_layernorm.norms.*": as("blk.*.attn_q_norm"),
				"layers.*.self_attn.k_layernorm.norms.*": as("blk.*.attn_k_norm"),
			}},
	}
}

// transposed is for matrices that lie the other way round.
func transposed(c *converter, s *source) { c.emit(s.to, []View{whole(s.Tensor).swap(0, 1)}, Same) }

// byHead puts the queries of all heads before the keys and those before the values: [heads][query, key, value][length].
func byHead(c *converter, s *source) {
	v := whole(s.Tensor).split(0, c.heads(), 3, 0).swap(0, 1)
	c.emit(s.to, []View{v}, Same, s.Shape...)
}

func gpt2Keys(c *converter) {
	o := c.config
	c.count("block_count", c.layers())
	c.count("context_length", o.need("n_ctx", "n_positions"))
	c.count("embedding_length", o.need("n_embd"))
	c.count("feed_forward_length", o.intOr(4*o.need("n_embd"), "n_inner"))
	c.count("attention.head_count", c.heads())
	c.number("attention.layer_norm_epsilon", o.floatOr(1e-5, "layer_norm_epsilon"))
	c.meta.Set("general.file_type", c.options.FileType)
}

// partlyRotated writes the keys of models whose heads are rotated in part.
func partlyRotated(c *converter) {
	c.count("context_length", c.config.need("max_position_embeddings"))
	c.count("embedding_length", c.width())
	c.count("block_count", c.layers())
	c.count("feed_forward_length", c.config.need("intermediate_size"))
	c.count("rope.dimension_count", int(c.rope().floatOr(0.25, "partial_rotary_factor")*float64(c.width()/c.heads())))
	c.count("attention.head_count", c.heads())
}

// parallelResidual says whether attention and feed-forward read the same stream; by default they do.
func parallelResidual(c *converter) {
	parallel, set := c.config.truth("use_parallel_residual")
	c.set("use_parallel_residual", parallel || !set)
}

func neoxKeys(c *converter) {
	partlyRotated(c)
	parallelResidual(c)
	c.number("attention.layer_norm_epsilon", c.config.floatOr(1e-5, "layer_norm_eps"))
	if x, ok := c.rope().float("rope_theta"); ok && x != 10000 {
		c.number("rope.freq_base", x)
	}
	c.meta.Set("general.file_type", c.options.FileType)
}

func stableKeys(c *converter) {
	partlyRotated(c)
	c.count("attention.head_count_kv", c.kvHeads())
	parallelResidual(c)
	c.number("attention.layer_norm_epsilon", c.config.floatOr(1e-5, "layer_norm_eps", "norm_eps"))
	c.meta.Set("general.file_type", c.options.FileType)
}
