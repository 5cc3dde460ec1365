package synth

// latentModels are models with multi-head latent attention, some beside recurrent layers.
var latentModels = []keyed{
	{"minicpm3-4b", "minicpm3", sizes{62, 2560, 6400, 40, 40, 73448, 32768}, longRope, []key{{rms, 1e-5}, {turned, 32},
		{queryRank, 768}, {kvRank, 256}, {headWidth, 96}, {valueWidth, 64}, {"rope.scaling.type", "longrope"},
		{originally, 32768}}},
	{"plm-1.8b", "plm", sizes{32, 2048, 8192, 16, 16, 151936, 4096}, nil, []key{{rms, 1e-6}, {turned, 64}, {kvRank, 512},
		{headWidth, 192}, {valueWidth, 128}}},
	{"deepseek-v3.2", "deepseek32", sizes{61, 7168, 18432, 128, 1, 129280, 163840}, biased, []key{{rms, 1e-6},
		{turned, 64}, {queryRank, 1536}, {kvRank, 512}, {headWidth, 576}, {valueWidth, 512}, {latentHead, 192},
		{latentValue, 128}, {denseFirst, 3}, {experts, 256}, {expertsUsed, 8}, {expertFFN, 2048}, {sharedCount, 1},
		{"expert_group_count", 8}, {"expert_group_used_count", 4}, {weightScale, 2.5}, {weightsNorm, true}, {gating, 2},
		{"rope.scaling.type", "yarn"}, {"rope.scaling.factor", 40.0}, {originally, 4096}, {sharper, 0.1},
		{indexers, 64}, {indexerWidth, 128}, {indexed, 2048}}},
	{"deepseek-v4-flash", "deepseek4", sizes{43, 4096, 2048, 64, 1, 129280, 1048576}, untied, []key{{rms, 1e-6},
		{turned, 64}, {base, 10000.0}, {queryRank, 1024}, {headWidth, 512}, {valueWidth, 512}, {window, 128},
		{"attention.output_group_count", 8}, {"attention.output_lora_rank", 1024}, {"attention.compress_ratios",
			[]int32{0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
				128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4}}, {"attention.compress_rope_freq_base", 160000.0},
		{indexers, 64}, {indexerWidth, 128}, {indexed, 512}, {"rope.scaling.type", "yarn"}, {"rope.scaling.factor", 16.0},
		{originally, 65536}, {"hyper_connection.count", 4}, {"hyper_connection.sinkhorn_iterations", 20},
		{"hyper_connection.epsilon", 1e-6}, {hashed, 3}, {experts, 256}, {expertsUsed, 6}, {expertFFN, 2048},
		{sharedCount, 1}, {weightScale, 1.5}, {weightsNorm, true}, {gating, 4}, {"swiglu_clamp_exp", []float32{10}}}},
	{"glm-5.2", "glm-dsa", sizes{78, 6144, 12288, 64, 1, 154880, 1048576}, biased, []key{{rms, 1e-5}, {turned, 64},
		{base, 8e6}, {queryRank, 2048}, {kvRank, 512}, {headWidth, 576}, {valueWidth, 512}, {latentHead, 256},
		{latentValue, 256}, {denseFirst, 3}, {experts, 256}, {expertsUsed, 8}, {expertFFN, 2048}, {sharedCount, 1},
		{weightScale, 2.5}, {weightsNorm, true}, {gating, 2}, {indexers, 32}, {indexerWidth, 128}, {indexed, 2048}}},
	{"hunyuan-4", "hy_v4", sizes{78, 6144, 18432, 64, 1, 120832, 1048576}, biased, []key{{rms, 1e-5}, {turned, 64},
		{base, 1e7}, {queryRank, 2048}, {kvRank, 512}, {headWidth, 576}, {valueWidth, 512}, {latentHead, 256},
		{latentValue, 256}, {denseFirst, 1}, {experts, 256}, {expertsUsed, 8}, {expertFFN, 2048}, {sharedCount, 1},
		{weightScale, 2.827}, {weightsNorm, true}, {gating, 2}, {"hyper_connection.count", 4},
		{"hyper_connection.epsilon", 1e-6}, {"hyper_connection.magnitude", 2.0}, {"swiglu_clamp_exp", []float32{10}},
		{indexers, 32}, {indexerWidth, 128}, {indexed, 2048}}},
	{"mistral-small-4", "mistral4", sizes{36, 4096, 12288, 32, 1, 131072, 1048576}, untied, []key{{rms, 1e-6}, {turned, 64},
		{queryRank, 1024}, {kvRank, 256}, {headWidth, 320}, {valueWidth, 256}, {latentHead, 128}, {latentValue, 128},
		{denseFirst, 0}, {experts, 128}, {expertsUsed, 4}, {expertFFN, 2048}, {sharedCount, 1}, {weightScale, 1.0},
		{weightsNorm, true}, {gating, 1}, {"attention.temperature_scale", 0.1}, {"attention.temperature_length", 8192},
		{"rope.scaling.type", "yarn"}, {"rope.scaling.factor", 128.0}, {originally, 8192}, {sharper, 0.1}}},
	{"dots.3-note", "dots3note", sizes{46, 5120, 13824, 128, 1, 152064, 524288}, biased, []key{{rms, 1e-5}, {turned, 64},
		{base, 8e7}, {"rope.freq_base_swa", 50000.0}, {queryRank, 1024}, {kvRank, 512}, {headWidth, 576}, {valueWidth, 512},
		{latentHead, 192}, {latentValue, 128}, {kvRank + near, 1024}, {headWidth + near, 1088}, {valueWidth + near, 1024},
		{latentHead + near, 256}, {latentValue + near, 128}, {"attention.head_count", marks{noteLayers, 'L', 64, 128}},
		{window, 512}, {windows, flags(noteLayers)}, {denseFirst, 1}, {experts, 256}, {expertsUsed, 8}, {expertFFN, 1536},
		{sharedCount, 1}, {weightScale, 1.0}, {weightsNorm, true}, {gating, 2}, {indexers, 64}, {indexerWidth, 128},
		{indexed, 2048}}},
	{"kimi-linear-48b-a3b", "kimi-linear", sizes{27, 2304, 9216, 32, 1, 163840, 1048576},
		[]string{"output.weight", "exp_probs_b.bias", "ssm_f_b.weight", "ssm_g_b.weight"}, []key{{rms, 1e-5}, {turned, 64},
			{"attention.head_count_kv", marks{"kkk*kkk*kkk*kkk*kkk*kkk*kk*", '*', 1, 0}}, {kvRank, 512}, {headWidth, 576},
			{valueWidth, 512}, {latentHead, 192}, {latentValue, 128}, {"ssm.conv_kernel", 4}, {"kda.head_dim", 128},
			{denseFirst, 1}, {experts, 256}, {expertsUsed, 8}, {expertFFN, 1024}, {sharedCount, 1}, {weightScale, 2.446},
			{weightsNorm, true}, {gating, 2}}},
	{"kimi-k3", "kimi-k3", sizes{93, 7168, 33792, 96, 1, 163840, 1048576}, []string{"output.weight", "exp_probs_b.bias",
		"attn_gate.weight", "ffn_gate_shexp.weight", "ffn_routed_norm.weight", "ssm_f_b.weight", "ssm_g.weight"},
		[]key{{rms, 1e-5}, {turned, 64}, {"attention.head_count_kv", marks{k3Layers, '*', 1, 0}}, {queryRank, 1536},
			{kvRank, 512}, {headWidth, 576}, {valueWidth, 512}, {latentHead, 192}, {latentValue, 128}, {"ssm.conv_kernel", 4},
			{"kda.head_dim", 128}, {"kda.gate_lower_bound", -5.0}, {denseFirst, 1}, {experts, 896}, {expertsUsed, 16},
			{expertFFN, 3072}, {"expert_latent_length", 3584}, {sharedCount, 2}, {weightScale, 1.0}, {weightsNorm, true},
			{gating, 2}, {"attn_res.block_size", 12}, {"activation.situ_beta", 4.0}, {"activation.situ_linear_beta", 25.0}}},
	{"ling-3-tiny", "bailingmoe3", sizes{24, 1536, 4608, 16, 1, 157184, 131072}, biased, []key{{rms, 1e-6}, {turned, 64},
		{base, 6e6}, {"attention.head_count_kv", marks{"kkk*", '*', 1, 0}}, {queryRank, 256}, {kvRank, 512}, {headWidth, 576},
		{valueWidth, 512}, {latentHead, 192}, {latentValue, 128}, {"ssm.conv_kernel", 4}, {"kda.head_dim", 128},
		{"kda.gate_lower_bound", -5.0}, {denseFirst, 1}, {experts, 128}, {expertsUsed, 8}, {expertFFN, 512},
		{sharedCount, 1}, {sharedFFN, 512}, {"expert_group_count", 8}, {"expert_group_used_count", 4}, {weightScale, 2.5},
		{weightsNorm, true}, {gating, 2}}},
}

// longRope are the tensors of models whose RoPE has divisors for short and long texts.
var longRope = []string{"rope_factors_long.weight", "rope_factors_short.weight"}

// Keys of latent attention and of indexers, and the layers of models.
const (
	queryRank   = "attention.q_lora_rank"
	latentHead  = "attention.key_length_mla"
	latentValue = "attention.value_length_mla"
	hashed      = "hash_layer_count"
	near        = "_swa" // ends keys of layers with a window
	originally  = "rope.scaling.original_context_length"
	sharper     = "rope.scaling.yarn_log_multiplier"

	indexers     = "attention.indexer.head_count"
	indexerWidth = "attention.indexer.key_length"
	indexed      = "attention.indexer.top_k"

	noteLayers = "GGLLLGLLLGLLLGLLLGLLLGLLLGLLLGLLLGLLLGLLLGLLLG"
	k3Layers   = "kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk*kkk**"
)
