package convert

// recurrents are models with state spaces or short convolutions: Mamba-2, Falcon-H1, LFM2.
func recurrents() []family {
	return []family{
		{arch: "mamba2", classes: []string{"Mamba2ForCausalLM"}, prefixes: []string{"model.", "backbone."}, noUsualNames: true,
			usual: mambaKeys, pre: "gpt-2",
			names: map[string]rule{
				"embeddings":                   as("token_embd"),
				"embedding":                    as("token_embd"),
				"norm_f":                       as("output_norm"),
				"lm_head":                      by("output", mambaHead),
				"layers.*.norm":                as("blk.*.attn_norm"),
				"layers.*.mixer.in_proj":       as("blk.*.ssm_in"),
				"layers.*.mixer.conv1d.weight": by("blk.*.ssm_conv1d.weight", squeezed),
				"layers.*.mixer.conv1d.bias":   as("blk.*.ssm_conv1d.bias"),
				"layers.*.mixer.dt_bias":       as("blk.*.ssm_dt.bias"),
				"layers.*.mixer.A_log":         by("blk.*.ssm_a", column(NegExp)),
				"layers.*.mixer.D":             by("blk.*.ssm_d", column(Same)),
				"layers.*.mixer.norm.weight":   by("blk.*.ssm_norm.weight", groupedNorm),
				"layers.*.mixer.out_proj":      as("blk.*.ssm_out"),
				"layers.*.mixer.dt_proj.bias":  as("blk.*.ssm_dt.bias"),
			}},
		{arch: "falcon-h1", classes: []string{"FalconH1ForCausalLM"}, prefixes: usualPrefixes(), usual: falconKeys,
			pre: "falcon-h1", names: falconNames()},
		{arch: "lfm2", classes: []string{"Lfm2ForCausalLM", "LFM2ForCausalLM"}, prefixes: usualPrefixes(), usual: lfm2Keys,
			pre:   "lfm2",
			names: lfm2Names()},
	}
}

func lfm2Names() map[string]rule {
	return map[string]rule{
		"embedding_norm":                 as("token_embd_norm"),
		"layers.*.operator_norm":         as("blk.*.attn_norm"),
		"layers.*.ffn_norm":              as("blk.*.ffn_norm"),
		"layers.*.feed_forward.w1":       as("blk.*.ffn_gate"),
		"layers.*.feed_forward.w2":       as("blk.*.ffn_down"),
		"layers.*.feed_forward.w3":       as("blk.*.ffn_up"),
		"layers.*.self_attn.out_proj":    as("blk.*.attn_output"),
		"layers.*.self_attn.q_layernorm": as("blk.*.attn_q_norm"),
		"layers.*.self_attn.k_layernorm": as("blk.*.attn_k_norm"),
		"layers.*.conv.in_proj":          as("blk.*.shortconv.in_proj"),
		"layers.*.conv.out_proj":         as("blk.*.shortconv.out_proj"),
		"layers.*.conv.conv.weight":      by("blk.*.shortconv.conv.weight", squeezed),
	}
}

// mambaHead leaves out an output matrix that is the embeddings again; their configurations leave that to transformers.
func mambaHead(c *converter, s *source) {
	if tied, set := c.config.truth("tie_word_embeddings"); set && !tied {
		keep(c, s)
	}
}

// column makes a vector a matrix with rows of one value.
func column(change Change) func(*converter, *source) {
	return func(c *converter, s *source) {
		c.emit(s.to, []View{whole(s.Tensor)}, change, append(whole(s.Tensor).shape(), 1)...)
	}
}

// groupedNorm makes a row for each group.
func groupedNorm(c *converter, s *source) {
	groups := max(c.config.intOr(1, "n_groups", "mamba_n_groups"), 1)
	c.emit(s.to, []View{whole(s.Tensor).split(0, groups, 0)}, Same)
}

// inner is the width inside of a state space.
func (c *converter) inner() int {
	return c.config.intOr(c.config.intOr(2, "mamba_expand", "expand")*c.width(), "mamba_d_ssm", "intermediate_size", "d_inner")
}

func mambaKeys(c *converter) {
	o := c.config
	c.count("context_length", 1<<20) // nothing bounds it
	c.count("embedding_length", c.width())
	c.count("feed_forward_length", 0) // llama.cpp wants this and the next
	c.count("attention.head_count", 0)
	c.count("block_count", c.layers())
	c.count("ssm.conv_kernel", o.intOr(4, "conv_kernel", "d_conv", "mamba_d_conv"))
	c.count("ssm.inner_size", c.inner())
	c.count("ssm.state_size", o.intOr(128, "state_size", "d_state", "mamba_d_state"))
	c.count("ssm.time_step_rank", c.inner()/max(o.intOr(64, "mamba_d_head", "head_dim"), 1))
	c.count("ssm.group_count", o.intOr(1, "n_groups", "mamba_n_groups"))
	c.number("attention.layer_norm_rms_epsilon", o.floatOr(1e-5, "layer_norm_epsilon", "rms_norm_eps"))
	c.meta.Set("general.file_type", c.options.FileType)
}

// falconNames have both a state space and attention in every layer. Falcon-H1 multiplies what flows between its parts;
// the file has the factors in its weights.
func falconNames() map[string]rule {
	times := func(to string, factors ...string) rule {
		return by(to, func(c *converter, s *source) {
			c.emit(s.to, []View{whole(s.Tensor).times(c.factors(factors...)...)}, Same)
		})
	}
	return map[string]rule{
		"embed_tokens":                     times("token_embd", "embedding_multiplier"),
		"lm_head":                          times("output", "lm_head_multiplier"),
		"final_layernorm":                  as("output_norm"),
		"layers.*.pre_ff_layernorm.weight": as("blk.*.ffn_norm"), // so, without a suffix
		"layers.*.self_attn.q_proj":        times("blk.*.attn_q", "attention_in_multiplier"),
		"layers.*.self_attn.k_proj":        times("blk.*.attn_k", "key_multiplier", "attention_in_multiplier"),
		"layers.*.self_attn.v_proj":        times("blk.*.attn_v", "attention_in_multiplier"),
		"layers.*.self_attn.o_proj":        times("blk.*.attn_output", "attention_out_multiplier"),
		"layers.*.feed_forward.gate_proj":  by("blk.*.ffn_gate", falconFeed(0)),
		"layers.*.feed_forward.up_proj":    as("blk.*.ffn_up"),
		"layers.*.feed_forward.down_proj":  by("blk.*.ffn_down", falconFeed(1)),
		"layers.*.mamba.in_proj":           by("blk.*.ssm_in", falconIn),
		"layers.*.mamba.out_proj":          times("blk.*.ssm_out", "ssm_out_multiplier"),
		"layers.*.mamba.conv1d.weight":     by("blk.*.ssm_conv1d.weight", squeezed),
		"layers.*.mamba.conv1d.bias":       as("blk.*.ssm_conv1d.bias"),
		"layers.*.mamba.dt_bias":           as("blk.*.ssm_dt.bias"),
		"layers.*.mamba.A_log":             by("blk.*.ssm_a", column(NegExp)),
		"layers.*.mamba.D":                 by("blk.*.ssm_d", column(Same)),
		"layers.*.mamba.norm.weight":       by("blk.*.ssm_norm.weight", groupedNorm),
	}
}

// factors reads multipliers, 1 where there is none.
func (c *converter) factors(names ...string) []float64 {
	out := make([]float64, len(names))
	for i, n := range names {
		out[i] = c.config.floatOr(1, n)
	}
	return out
}

func falconFeed(i int) func(*converter, *source) {
	return func(c *converter, s *source) {
		x := c.config.numbers("mlp_multipliers")
		if len(x) <= i {
			failf("mlp_multipliers has %d numbers, want 2", len(x))
		}
		c.emit(s.to, []View{whole(s.Tensor).times(x[i])}, Same)
	}
}

// falconIn multiplies each of gate, input, B, C and time step, which lie one behind the other, by a factor.
func falconIn(c *converter, s *source) {
	x := c.config.numbers("ssm_multipliers")
	if len(x) != 5 {
		failf("ssm_multipliers has %d numbers, want 5", len(x))
	}
	all := c.config.floatOr(1, "ssm_in_multiplier")
	state := c.config.need("mamba_n_groups") * c.config.need("mamba_d_state")
	v, from := whole(s.Tensor), 0
	v.dims(2)
	var views []View
	for i, n := range []int{c.inner(), c.inner(), state, state, 0} {
		if i == 4 {
			n = int(v.Dims[0].N) - from
		}
		views = append(views, v.narrow(0, from, n).times(all, x[i]))
		from += n
	}
	c.emit(s.to, views, Same, s.Shape...)
}

func falconKeys(c *converter) {
	mambaKeys(c)
	c.count("vocab_size", c.config.need("vocab_size"))
	c.count("context_length", c.config.int("max_position_embeddings"))
	c.count("feed_forward_length", c.config.need("intermediate_size"))
	c.count("attention.head_count", c.heads())
	c.count("attention.head_count_kv", c.kvHeads())
	c.count("attention.key_length", c.headDim())
	c.count("attention.value_length", c.headDim())
	c.number("rope.freq_base", c.rope().floatOr(10000, "rope_theta"))
}

// lfm2Keys writes the keys of LFM2. A layer without heads of keys is one that does not attend.
func lfm2Keys(c *converter) {
	kv, types := c.kvHeads(), c.config.strings("layer_types")
	attends := c.config.numbers("full_attn_idxs") // older configurations
	delete(c.config.values, "num_key_value_heads")
	c.usualKeys()
	heads := make([]int32, c.layers())
	for i := range heads {
		if i < len(types) && types[i] != "conv" {
			heads[i] = int32(kv)
		}
	}
	for _, i := range attends {
		if len(types) == 0 && i >= 0 && int(i) < len(heads) {
			heads[int(i)] = int32(kv)
		}
	}
	c.set("attention.head_count_kv", heads)
	c.count("vocab_size", c.config.need("vocab_size"))
	c.count("shortconv.l_cache", c.config.need("conv_L_cache"))
	c.number("attention.layer_norm_rms_epsilon", c.config.floatOr(1e-5, "norm_eps", "block_norm_eps"))
	c.count("feed_forward_length", lfm2Feed(c))
}

// lfm2Feed is the width of the feed-forward, which some configurations give before it is rounded.
func lfm2Feed(c *converter) int {
	n := c.config.need("block_ff_dim", "intermediate_size")
	if adjust, set := c.config.truth("block_auto_adjust_ff_dim"); set && !adjust {
		return n
	}
	n = 2 * n / 3
	if x, ok := c.config.float("block_ffn_dim_multiplier"); ok {
		n = int(x * float64(n))
	}
	multiple := max(c.config.intOr(256, "block_multiple_of"), 1)
	return multiple * ((n + multiple - 1) / multiple)
}
