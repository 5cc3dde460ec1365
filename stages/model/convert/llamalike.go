package convert

import "math"

// llamalikes are dense models whose names and keys differ a little from Llama's.
func llamalikes() []family {
	ends := map[string]rule{ // norms behind the blocks
		"layers.*.post_attention_layernorm":   as("blk.*.post_attention_norm"),
		"layers.*.post_feedforward_layernorm": as("blk.*.post_ffw_norm"),
	}
	return []family{
		{arch: "smollm3", classes: []string{"SmolLM3ForCausalLM"}, prefixes: usualPrefixes(), names: llamaNames(),
			keys: llamaKeys, extra: llama3Factors, vocab: llamaVocabulary},
		{arch: "seed_oss", classes: []string{"SeedOssForCausalLM"}, prefixes: usualPrefixes(), pre: "seed-coder",
			names: map[string]rule{"layers.*.post_attention_layernorm": as("blk.*.post_attention_norm")}},
		{arch: "olmo2", classes: []string{"Olmo2ForCausalLM", "Olmo3ForCausalLM"}, prefixes: usualPrefixes(), names: ends,
			pre: "dbrx", keys: olmo2Keys},
		{arch: "olmoe", classes: []string{"OlmoeForCausalLM"}, prefixes: usualPrefixes(), pre: "olmo",
			keys: func(c *converter) { c.number("attention.layer_norm_rms_epsilon", 1e-5) }},
		{arch: "exaone4", classes: []string{"Exaone4ForCausalLM"}, prefixes: usualPrefixes(), names: ends, pre: "exaone4",
			keys: exaone4Keys, extra: llama3Factors},
		{arch: "starcoder2", classes: []string{"Starcoder2ForCausalLM"}, prefixes: usualPrefixes(), pre: "starcoder",
			names: map[string]rule{
				"layers.*.mlp.c_fc":   as("blk.*.ffn_up"),
				"layers.*.mlp.c_proj": as("blk.*.ffn_down"),
			}},
		{arch: "phi3", classes: []string{"Phi3ForCausalLM"}, prefixes: usualPrefixes(), usual: phi3Keys, extra: phi3Factors,
			names: map[string]rule{
				"layers.*.self_attn.qkv_proj": as("blk.*.attn_qkv"),
				"layers.*.mlp.gate_up_proj":   as("blk.*.ffn_up"),
			}},
		{arch: "phimoe", classes: []string{"PhiMoEForCausalLM", "PhimoeForCausalLM"}, prefixes: usualPrefixes(), usual: phi3Keys,
			names: llamaNamesAsTheyLie(), extra: phi3Factors,
			keys: func(c *converter) {
				c.count("expert_used_count", c.config.need("num_experts_per_tok", "num_experts_per_token"))
				c.count("expert_count", c.config.need("num_local_experts", "num_experts"))
			}},
		{arch: "internlm2", classes: []string{"InternLM2ForCausalLM"}, prefixes: usualPrefixes(),
			names: map[string]rule{
				"tok_embeddings":                 as("token_embd"),
				"output":                         by("output", head),
				"layers.*.attention_norm":        as("blk.*.attn_norm"),
				"layers.*.attention.wqkv":        by("blk.*.", internQKV),
				"layers.*.attention.wqkv.weight": by("blk.*.", internQKV),
				"layers.*.attention.wo":          as("blk.*.attn_output"),
				"layers.*.ffn_norm":              as("blk.*.ffn_norm"),
				"layers.*.feed_forward.w1":       as("blk.*.ffn_gate"),
				"layers.*.feed_forward.w2":       as("blk.*.ffn_down"),
				"layers.*.feed_forward.w3":       as("blk.*.ffn_up"),
			}},
	}
}

func olmo2Keys(c *converter) {
	if !c.config.has("sliding_window") {
		return
	}
	c.count("attention.sliding_window", c.config.int("sliding_window"))
	local := make([]bool, c.layers())
	types := c.config.strings("layer_types")
	for i := range local {
		local[i] = (i+1)%4 != 0
		if i < len(types) {
			local[i] = types[i] == "sliding_attention"
		}
	}
	c.set("attention.sliding_window_pattern", local)
}

func exaone4Keys(c *converter) {
	c.count("vocab_size", c.config.need("vocab_size"))
	if !c.config.has("sliding_window") {
		return
	}
	c.count("attention.sliding_window", c.config.int("sliding_window"))
	local := make([]bool, c.layers())
	types, pattern := c.config.strings("layer_types"), c.config.string("sliding_window_pattern") // such as LLLG
	for i := range local {
		switch {
		case i < len(types):
			local[i] = types[i] == "sliding_attention"
		case pattern != "":
			local[i] = pattern[i%len(pattern)] == 'L'
		default:
			local[i] = (i+1)%max(c.config.int("sliding_window_pattern"), 1) != 0
		}
	}
	c.set("attention.sliding_window_pattern", local)
}

func phi3Keys(c *converter) {
	o, r := c.config, c.rope()
	c.count("context_length", o.need("n_positions", "max_position_embeddings"))
	c.count("rope.scaling.original_context_length", r.need("original_max_position_embeddings"))
	c.count("embedding_length", c.width())
	c.count("feed_forward_length", o.need("intermediate_size"))
	c.count("block_count", c.layers())
	c.count("attention.head_count", c.heads())
	c.count("attention.head_count_kv", c.kvHeads())
	c.number("attention.layer_norm_rms_epsilon", o.floatOr(1e-5, "rms_norm_eps"))
	c.count("rope.dimension_count", phi3Rope(c))
	c.number("rope.freq_base", c.fullRope().floatOr(10000, "rope_theta"))
	c.meta.Set("general.file_type", c.options.FileType)
	c.count("attention.sliding_window", o.int("sliding_window"))
	if long := r.numbers("long_factor"); len(long) > 0 {
		c.number("rope.scaling.attn_factor", phi3Attention(c))
	}
}

func phi3Rope(c *converter) int {
	return int(c.rope().floatOr(1, "partial_rotary_factor")*float64(c.width())) / c.heads()
}

// phi3Attention is by how much the attention of a longer context is sharpened.
func phi3Attention(c *converter) float64 {
	r := c.rope()
	old := float64(r.need("original_max_position_embeddings"))
	scale := float64(c.config.need("n_positions", "max_position_embeddings")) / old
	if scale <= 1 || old <= 1 {
		return 1
	}
	if r.string("rope_type") == "yarn" {
		return 0.1*math.Log(scale) + 1
	}
	return math.Sqrt(1 + math.Log(scale)/math.Log(old))
}

// phi3Factors are the factors of angles for long and for short texts.
func phi3Factors(c *converter) {
	for _, kind := range []string{"long", "short"} {
		if x := c.rope().numbers(kind + "_factor"); len(x) > 0 {
			values := make([]float32, len(x))
			for i := range x {
				values[i] = float32(x[i])
			}
			c.constant("rope_factors_"+kind+".weight", values)
		}
	}
}

// internQKV takes apart groups of queries with their key and value: [groups][queries, key, value][length][width].
func internQKV(c *converter, s *source) {
	groups := c.kvHeads()
	queries := c.heads() / max(groups, 1)
	v := whole(s.Tensor).split(0, groups, queries+2, 0)
	v.dims(4)
	rows := int(v.Dims[2].N)
	turned := func(x View) View { return x.split(2, 2, 0).swap(2, 3) }
	q, k := turned(v.narrow(1, 0, queries)), turned(v.narrow(1, queries, 1))
	c.emit(s.to+"attn_q.weight", []View{q}, Same, groups*queries*rows, int(v.Dims[3].N))
	c.emit(s.to+"attn_k.weight", []View{k}, Same, groups*rows, int(v.Dims[3].N))
	c.emit(s.to+"attn_v.weight", []View{v.narrow(1, queries+1, 1)}, Same, groups*rows, int(v.Dims[3].N))
}
