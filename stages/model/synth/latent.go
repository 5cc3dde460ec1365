package synth

import "strings"

// Latent is the hyper-parameters of multi-head latent attention and of the mixtures that come with it.
type Latent struct {
	QueryRank int `json:"q_lora_rank"` // 0: queries come from rows themselves
	KVRank    int `json:"kv_lora_rank"`
	StillDim  int `json:"qk_nope_head_dim"` // features of a head that RoPE leaves alone
	RopeDim   int `json:"qk_rope_head_dim"`
	ValueDim  int `json:"v_head_dim"`

	RoutedExperts   int     `json:"n_routed_experts"` // Experts
	SharedExperts   int     `json:"n_shared_experts"`
	LeadingDense    int     `json:"first_k_dense_replace"` // layers
	RouteGroups     int     `json:"n_group"`
	RouteGroupsUsed int     `json:"topk_group"`
	RouteScale      float64 `json:"routed_scaling_factor"`
	RouteNormalise  bool    `json:"norm_topk_prob"`
}

// latent writes the keys of multi-head latent attention.
func (w writer) latent(c *Config) {
	w.count("attention.head_count_kv", 1) // all heads attend to one vector
	w.countIf("attention.q_lora_rank", c.QueryRank)
	w.count("attention.kv_lora_rank", c.KVRank)
	w.count("attention.key_length", c.KVRank+c.RopeDim)
	w.count("attention.value_length", c.KVRank)
	w.count("attention.key_length_mla", c.StillDim+c.RopeDim)
	w.count("attention.value_length_mla", c.ValueDim)
	w.count("rope.dimension_count", c.RopeDim)
	if c.Experts == 0 {
		return
	}
	w.count("leading_dense_block_count", c.LeadingDense)
	w.count("expert_shared_count", c.SharedExperts)
	w.countIf("expert_group_count", c.RouteGroups)
	w.countIf("expert_group_used_count", c.RouteGroupsUsed)
	w.numberIf("expert_weights_scale", c.RouteScale)
	softmax, sigmoid := 1, 2 // llama.cpp's numbers
	if c.sigmoids() {
		w.count("expert_gating_func", sigmoid)
	} else {
		w.count("expert_gating_func", softmax)
	}
	if c.RouteNormalise {
		w.m.Set(w.prefix+"expert_weights_norm", true)
	}
}

// sigmoids says whether experts are scored by sigmoids, with a bias of the choice.
func (c *Config) sigmoids() bool { return c.ModelType == "deepseek_v3" }

func (c *Config) hasLatent(name string) bool {
	return c.sigmoids() && strings.HasSuffix(name, ".exp_probs_b.bias")
}

// latents are shapes of models with multi-head latent attention.
func latents() []Shape {
	yarn := &Scaling{Type: "yarn", Factor: 40, Original: 4096, BetaFast: 32, BetaSlow: 1, MscaleAll: 0.707}
	lite := Config{ModelType: "deepseek_v2", Layers: 27, Width: 2048, FFN: 10944, Heads: 16, Vocab: 102400,
		Context: 163840, RopeTheta: 10000, Eps: 1e-6, Experts: 64, ExpertsUsed: 6, ExpertFFN: 1408, Scaling: yarn,
		Latent: Latent{KVRank: 512, StillDim: 128, RopeDim: 64, ValueDim: 128, SharedExperts: 2, LeadingDense: 1,
			RouteGroups: 1, RouteGroupsUsed: 1, RouteScale: 1}}
	v2 := lite
	v2.Layers, v2.Width, v2.FFN, v2.Heads, v2.Experts, v2.ExpertFFN = 60, 5120, 12288, 128, 160, 1536
	v2.QueryRank, v2.RouteGroups, v2.RouteGroupsUsed, v2.RouteScale = 1536, 8, 3, 16
	sharper := *yarn
	sharper.MscaleAll = 1
	v3 := v2
	v3.ModelType, v3.Layers, v3.Width, v3.FFN, v3.Vocab, v3.Experts = "deepseek_v3", 61, 7168, 18432, 129280, 256
	v3.ExpertsUsed, v3.ExpertFFN, v3.SharedExperts, v3.LeadingDense, v3.Scaling = 8, 2048, 1, 3, &sharper
	v3.RouteGroupsUsed, v3.RouteScale, v3.RouteNormalise = 4, 2.5, true
	return []Shape{{"deepseek-v2-lite", lite}, {"deepseek-v2", v2}, {"deepseek-v3", v3}}
}
