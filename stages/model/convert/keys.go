package convert

import (
	"math"
	"slices"
	"strings"
)

// Keys are written in the order of llama.cpp's converter, and with its types: counts are uint32, numbers float32.

func (c *converter) set(key string, value any) { c.meta.Set(c.family.arch+"."+key, value) }

func (c *converter) count(key string, n int) { c.set(key, uint32(max(n, 0))) }

func (c *converter) number(key string, x float64) { c.set(key, float32(x)) }

// countOf writes a count that config.json has under one of some names, if it does.
func (c *converter) countOf(key string, names ...string) {
	if c.config.hasAny(names...) {
		c.count(key, c.config.int(names...))
	}
}

// numberOf writes a number that config.json has under one of some names, if it does.
func (c *converter) numberOf(key string, names ...string) {
	if x, ok := c.config.float(names...); ok {
		c.number(key, x)
	}
}

func (o object) hasAny(keys ...string) bool {
	v, _ := o.get(keys...)
	return v != nil
}

// keys writes all metadata.
func (c *converter) keys(tensors []Tensor) error {
	c.meta.Set("general.architecture", c.family.arch)
	c.meta.Set("general.type", "model")
	if err := c.general(tensors); err != nil {
		return err
	}
	if c.family.usual != nil {
		c.family.usual(c)
	} else {
		c.usualKeys()
	}
	if c.family.keys != nil {
		c.family.keys(c)
	}
	const quantizationVersion = 2 // of ggml's block layouts
	c.meta.Set("general.quantization_version", uint32(quantizationVersion))
	if c.family.vocab != nil {
		return c.family.vocab(c)
	}
	return c.vocabulary()
}

// usualKeys writes the keys that most families have.
func (c *converter) usualKeys() {
	c.count("block_count", c.layers()+c.next)
	c.countOf("context_length", "max_position_embeddings", "n_ctx", "n_positions", "max_length", "max_sequence_length",
		"model_max_length")
	c.countOf("embedding_length", "hidden_size", "n_embd", "dim")
	c.countOf("feed_forward_length", "prefix_dense_intermediate_size", "dense_intermediate_size", "intermediate_size",
		"n_inner", "hidden_dim")
	c.countOf("attention.head_count", "num_attention_heads", "n_head", "n_heads")
	c.countOf("attention.head_count_kv", "num_key_value_heads", "n_kv_heads")
	if causal, set := c.config.truth("is_causal"); set && !causal {
		c.set("attention.causal", false)
	}
	c.ropeKeys()
	c.numberOf("attention.layer_norm_rms_epsilon", "rms_norm_eps", "norm_eps")
	c.numberOf("attention.layer_norm_epsilon", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")
	c.countOf("expert_count", "num_local_experts", "num_experts", "n_routed_experts")
	c.countOf("expert_used_count", "num_experts_per_tok", "num_experts_per_token", "top_k_experts")
	c.countOf("expert_group_count", "n_group")
	c.countOf("expert_group_used_count", "topk_group")
	c.gatingKey()
	if c.config.has("head_dim") {
		c.count("attention.key_length", c.headDim())
		c.count("attention.value_length", c.headDim())
	}
	c.meta.Set("general.file_type", c.options.FileType)
}

// gatingKey writes how a router weighs experts.
func (c *converter) gatingKey() {
	const softmax, sigmoid = 1, 2 // as llama.cpp numbers them
	switch name := c.config.string("score_function", "scoring_func", "score_func", "moe_router_activation",
		"moe_router_activation_func", "expert_selection_fn"); name {
	case "":
	case "sigmoid":
		c.set("expert_gating_func", uint32(sigmoid))
	case "softmax":
		c.set("expert_gating_func", uint32(softmax))
	default:
		c.config.faultf("the router weighs experts by %.40q, want softmax or sigmoid", name)
	}
}

// rope is how positions are turned into angles: today's rope_parameters, or what older configurations say.
func (c *converter) rope() object {
	r := c.config.object("rope_parameters")
	if len(r.values) == 0 {
		r = c.config.object("rope_scaling")
	}
	if r.has("full_attention") || r.has("sliding_attention") {
		return r
	}
	for to, names := range map[string][]string{
		"rope_theta":                       {"global_rope_theta", "rope_global_theta", "rope_theta_global", "rope_theta", "rotary_emb_base"},
		"partial_rotary_factor":            {"partial_rotary_factor", "rope_pct", "rope_percent"},
		"original_max_position_embeddings": {"original_max_position_embeddings"},
	} {
		if v, _ := c.config.get(names...); v != nil && !r.has(to) {
			r.values[to] = v
		}
	}
	if !r.has("rope_type") && r.has("type") {
		r.values["rope_type"] = r.values["type"]
	}
	if v, _ := c.config.get("local_rope_theta", "rope_local_theta", "rope_theta_local", "swa_rope_theta",
		"rope_local_base_freq"); v != nil {
		r.values["sliding_attention"] = map[string]any{"rope_theta": v}
	}
	return r
}

// fullRope is rope for the layers that attend to everything.
func (c *converter) fullRope() object {
	r := c.rope()
	if r.has("full_attention") {
		return r.object("full_attention")
	}
	return r
}

// ropeTypes are the ways to scale positions that change metadata, factors of angles, or nothing within the context that
// a model was trained for (dynamic).
func ropeTypes() []string {
	return []string{"", "default", "linear", "yarn", "su", "longrope", "llama3", "dynamic", "mrope", "proportional"}
}

func (c *converter) ropeKeys() {
	all, r := c.rope(), c.fullRope()
	factor, scaled := r.float("factor")
	switch kind := r.string("rope_type"); {
	case kind == "linear" && scaled:
		c.set("rope.scaling.type", "linear")
		c.number("rope.scaling.factor", factor)
	case kind == "yarn" && scaled:
		c.set("rope.scaling.type", "yarn")
		c.number("rope.scaling.factor", factor)
		c.count("rope.scaling.original_context_length", r.need("original_max_position_embeddings"))
		for _, k := range [][]string{{"yarn_ext_factor", "extrapolation_factor"},
			{"yarn_attn_factor", "attention_factor", "attn_factor"}, {"yarn_beta_fast", "beta_fast"},
			{"yarn_beta_slow", "beta_slow"}} {
			if x, ok := r.float(k[1:]...); ok {
				c.number("rope.scaling."+k[0], x)
			}
		}
	case kind == "su" || kind == "longrope":
		c.set("rope.scaling.type", "longrope")
	case !slices.Contains(ropeTypes(), kind):
		c.config.faultf("positions are scaled by %.40q, want one of %s", kind, strings.Join(ropeTypes()[1:], ", "))
	}
	if sections := all.numbers("mrope_section"); len(sections) > 0 {
		c.sections(sections)
	}
	if x, ok := r.float("rope_theta"); ok {
		c.number("rope.freq_base", x)
	}
	if x, ok := all.object("sliding_attention").float("rope_theta"); ok {
		c.number("rope.freq_base_swa", x)
	}
}

// sections writes how many pairs of a head turn with time, height, width and more.
func (c *converter) sections(x []float64) {
	four := make([]int32, 4)
	for i := range min(len(x), len(four)) {
		four[i] = int32(x[i])
	}
	c.set("rope.dimension_sections", four)
}

// llama3Factors are the factors by which Llama 3.1 and later slow down angles, if the model has them.
func llama3Factors(c *converter) {
	r := c.fullRope()
	if r.string("rope_type") != "llama3" {
		return
	}
	base, dim := r.floatOr(10000, "rope_theta"), c.headDim()
	factor, low := float32(r.floatOr(8, "factor")), float32(r.floatOr(1, "low_freq_factor"))
	high, old := float32(r.floatOr(4, "high_freq_factor")), float32(r.floatOr(8192, "original_max_position_embeddings"))
	factors := make([]float32, 0, dim/2)
	for i := 0; i < dim; i += 2 { // in float32 throughout, as PyTorch
		freq := 1 / float32(math.Pow(base, float64(float32(i)/float32(dim))))
		wave := float32(2*math.Pi) / freq
		switch {
		case wave < old/high:
			factors = append(factors, 1)
		case wave > old/low:
			factors = append(factors, factor)
		default:
			smooth := (old/wave - low) / (high - low)
			factors = append(factors, 1/((1-smooth)/factor+smooth))
		}
	}
	c.constant("rope_freqs.weight", factors)
}
