package synth

// recurrentModels are models with states.
var recurrentModels = []keyed{
	{"mamba-2.8b", "mamba", sizes{64, 2560, 0, 0, 0, 50288, 1048576}, []string{"ssm_conv1d.bias"}, []key{{rms, 1e-5},
		{"ssm.conv_kernel", 4}, {"ssm.inner_size", 5120}, {"ssm.state_size", 16}, {"ssm.time_step_rank", 160}}},
	{"jamba-v0.1", "jamba", sizes{32, 4096, 14336, 32, 8, 65536, 262144}, []string{"output.weight", "ssm_conv1d.bias",
		"ssm_dt_norm.weight", "ssm_b_norm.weight", "ssm_c_norm.weight", "ffn_gate_inp.weight"}, []key{{rms, 1e-6},
		{"attention.head_count_kv", marks{"mmmm*mmm", '*', 8, 0}}, {experts, 16}, {expertsUsed, 2}, {"ssm.conv_kernel", 4},
		{"ssm.inner_size", 8192}, {"ssm.state_size", 16}, {"ssm.time_step_rank", 256}}},
	{"plamo-2-1b", "plamo2", sizes{16, 2048, 8192, 16, 1, 100000, 10485760}, []string{"attn_qkv.weight"}, []key{{rms, 1e-6},
		{turned, 128}, {headWidth, 128}, {valueWidth, 128}, {"attention.head_count_kv", marks{"m*", '*', 1, 0}},
		{"ssm.conv_kernel", 4}, {"ssm.inner_size", 4096}, {"ssm.state_size", 64}, {"ssm.time_step_rank", 32},
		{"ssm.group_count", 0}}},
	{"rwkv-6-1.6b", "rwkv6", sizes{24, 2048, 7168, 0, 0, 65536, 1048576}, []string{"output.weight",
		"time_mix_lerp_fused.weight"}, []key{{norm, 1e-5}, {"wkv.head_size", 64}, {"time_mix_extra_dim", 32},
		{"time_decay_extra_dim", 64}, {"rescale_every_n_layers", 6}}},
	{"rwkv-7-1.5b", "rwkv7", sizes{24, 2048, 8192, 0, 0, 65536, 1048576}, []string{"output.weight", "time_mix_ln.weight"},
		[]key{{norm, 1e-5}, {"wkv.head_size", 64}, {"attention.decay_lora_rank", 96}, {"attention.iclr_lora_rank", 96},
			{"attention.value_residual_mix_lora_rank", 64}, {"attention.gate_lora_rank", 256}}},
	{"falcon-h1-7b", "falcon-h1", sizes{44, 3072, 12288, 12, 2, 130048, 262144}, []string{"output.weight",
		"ssm_conv1d.bias"}, []key{{rms, 1e-5}, {turned, 128}, {headWidth, 128}, {valueWidth, 128}, {base, 1e11},
		{"ssm.conv_kernel", 4}, {"ssm.inner_size", 3072}, {"ssm.state_size", 256}, {"ssm.time_step_rank", 24},
		{"ssm.group_count", 1}}},
	{"nemotron-h-8b", "nemotron_h", sizes{52, 4096, 21504, 32, 8, 131072, 8192}, []string{"output.weight",
		"ssm_conv1d.bias"}, []key{{rms, 1e-5}, {norm, 1e-5}, {headWidth, 128}, {valueWidth, 128},
		{"attention.head_count_kv", marks{hybridLayers, '*', 8, 0}}, {"feed_forward_length", marks{hybridLayers, '-', 21504, 0}},
		{"ssm.conv_kernel", 4}, {"ssm.inner_size", 8192}, {"ssm.state_size", 128}, {"ssm.time_step_rank", 128},
		{"ssm.group_count", 8}}},
	{"nemotron-3-nano-30b-a3b", "nemotron_h_moe", sizes{52, 2688, 1856, 32, 2, 131072, 262144}, []string{"output.weight",
		"ssm_conv1d.bias", "exp_probs_b.bias"}, []key{{rms, 1e-5}, {norm, 1e-5}, {headWidth, 128}, {valueWidth, 128},
		{"attention.head_count_kv", marks{nanoLayers, '*', 2, 0}}, {"feed_forward_length", marks{nanoLayers, 'E', 1856, 0}},
		{"ssm.conv_kernel", 4}, {"ssm.inner_size", 4096}, {"ssm.state_size", 128}, {"ssm.time_step_rank", 64},
		{"ssm.group_count", 8}, {experts, 128}, {expertsUsed, 6}, {expertFFN, 1856}, {sharedCount, 1}, {sharedFFN, 3712},
		{weightsNorm, true}, {weightScale, 2.5}}},
	{"granite-4-h-small", "granitehybrid", sizes{40, 4096, 768, 32, 8, 100352, 131072}, []string{"ssm_conv1d.bias",
		"ssm_norm.weight"}, []key{{rms, 1e-5}, {"rope.scaling.finetuned", false},
		{"attention.head_count_kv", marks{"mmmmm*mmmm", '*', 8, 0}}, {"ssm.conv_kernel", 4}, {"ssm.inner_size", 8192},
		{"ssm.state_size", 128}, {"ssm.time_step_rank", 128}, {"ssm.group_count", 1}, {experts, 72}, {expertsUsed, 10},
		{sharedFFN, 1536}}},
	{"minimax-text-01", "minimax-01", sizes{80, 6144, 9216, 64, 8, 200064, 10240000}, untied, []key{{rms, 1e-5},
		{turned, 64}, {base, 1e7}, {headWidth, 128}, {valueWidth, 128}, {interval, 8}, {"residual_scale", 3.5565588200778455},
		{experts, 32}, {expertsUsed, 2}}},
	{"qwen4-exp", "qwen4exp", sizes{48, 2560, 640, 24, 2, 248320, 262144}, []string{"output.weight", "hc_attn_inject.weight",
		"hc_ffn_inject.weight"}, []key{{rms, 1e-6}, {turned, 64}, {sections, []int32{11, 11, 10, 0}}, {base, 1e7},
		{interval, 4}, {headWidth, 256}, {valueWidth, 256}, {"ssm.conv_kernel", 4}, {"ssm.inner_size", 6144},
		{"ssm.state_size", 128}, {"ssm.time_step_rank", 48}, {"ssm.group_count", 16}, {experts, 512}, {expertsUsed, 10},
		{expertFFN, 640}, {sharedFFN, 640}, {"hyper_connection.count", 4}, {"hyper_connection.low_rank", 320}, {indexers, 4},
		{indexerWidth, 128}, {indexed, 2048}, {"attention.compress_ratios", marks{"rrr*", '*', 4, 0}}}},
}

// The layers of models: M has a state, * attends, - and E have networks and experts.
const (
	hybridLayers = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"
	nanoLayers   = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
)
