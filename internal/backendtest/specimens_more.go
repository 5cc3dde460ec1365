package backendtest

import "maps"

// moreSpecimens are models of the families from lfm2moe to xverse.
var moreSpecimens = []Specimen{
	{Name: "lfm2moe", Arch: "lfm2moe", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias",
		"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "proj.bias", "conv.bias", "exps.bias", "inp.bias", "output.bias",
		"output.weight", "output_norm.weight", "token_embd.bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "block_count": uint32(3), "shortconv.l_cache": uint32(3),
		"attention.head_count_kv": []int32{0, 2, 0}, "leading_dense_block_count": uint32(1), "expert_count": uint32(6),
		"expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32), "expert_gating_func": uint32(2),
	}},
	{Name: "gemma-embedding", Arch: "gemma-embedding", without: []string{".bias"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(7),
		"attention.sliding_window": uint32(8), "rope.freq_base": float32(1e6), "dense_2_feat_in": uint32(64),
		"dense_2_feat_out": uint32(96), "dense_3_feat_in": uint32(96), "dense_3_feat_out": uint32(64),
		"pooling_type": uint32(1), "attention.causal": false}},
	{Name: "modern-bert", Arch: "modern-bert", without: []string{".bias"}, lacks: "blk.0.attn_norm.weight",
		Tolerance: 5e-3, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5), "block_count": uint32(5),
			"rope.dimension_count": uint32(16), "attention.sliding_window": uint32(9), "rope.freq_base": float32(160000),
			"rope.freq_base_swa": float32(10000), "attention.head_count_kv": uint32(4), "pooling_type": uint32(2),
			"attention.causal": false}},
	{Name: "apertus", Arch: "apertus", without: []string{".bias"}, Tolerance: 3e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"xielu.alpha_n": []float32{0.3, 1.1}, "xielu.alpha_p": []float32{0.8, -0.4}, "xielu.beta": []float32{0.5, 0.4},
		"xielu.eps": []float32{-1e-6, -1e-6}}},
	{Name: "bloom", Arch: "bloom", lacks: "output.bias", Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.head_count": uint32(6),
		"attention.head_count_kv": uint32(6), "embedding_length": uint32(96)}},
	{Name: "dbrx", Arch: "dbrx", without: []string{".bias"}, lacks: "rope_freqs.weight", Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"expert_count": uint32(6), "expert_used_count": uint32(2), "attention.clamp_kqv": float32(0.9)}},
	{Name: "olmo-clips", Arch: "olmo", without: []string{".bias", "output.weight", "attn_qkv.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"attention.clamp_kqv": float32(0.8)}},
	{Name: "mpt-clips", Arch: "mpt", without: []string{".bias", "output.weight"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.max_alibi_bias": float32(8),
		"attention.head_count_kv": uint32(4), "attention.clamp_kqv": float32(0.7)}},
	{Name: "smallthinker", Arch: "smallthinker", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(5),
		"attention.sliding_window": uint32(4096), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(32), "expert_gating_func": uint32(2)}},
	{Name: "smallthinker-softmax", Arch: "smallthinker", without: []string{".bias"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16),
			"expert_count": uint32(6), "expert_used_count": uint32(3), "expert_gating_func": uint32(1),
			"expert_feed_forward_length": uint32(96)}},
	{Name: "mpt", Arch: "mpt", without: []string{".bias", "output.weight"},
		Tolerance: 5e-3, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5),
			"attention.max_alibi_bias": float32(8), "attention.head_count_kv": uint32(4)}},
	{Name: "jais", Arch: "jais", lacks: "output.bias", Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.max_alibi_bias": float32(8),
		"attention.head_count_kv": uint32(4)}},
	{Name: "refact", Arch: "refact", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "attention.head_count_kv": uint32(1)}},
	{Name: "baichuan-13b", Arch: "baichuan", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 1e-3,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "block_count": uint32(40),
			"rope.dimension_count": uint32(16), "attention.head_count_kv": uint32(4)}},
	{Name: "jina-bert-v2", Arch: "jina-bert-v2", without: []string{"q_norm.weight", "attn_norm_2.weight", "attn_qkv.weight",
		"ffn_up.bias", "ffn_gate.bias"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.head_count_kv": uint32(4), "attention.causal": false,
		"tokenizer.ggml.token_type_count": uint32(2)}},
	{Name: "jina-bert-v2-code", Arch: "jina-bert-v2", without: []string{"attn_qkv.weight", "ffn_gate.weight", "ffn_up.bias",
		"ffn_gate.bias"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.head_count_kv": uint32(4), "attention.causal": false,
		"tokenizer.ggml.token_type_count": uint32(2)}},
	{Name: "llama-embed", Arch: "llama-embed", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"attention.causal": false}},
	{Name: "maincoder", Arch: "maincoder", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "mellum", Arch: "mellum", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(3),
		"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": []bool{true, false, true},
		"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32),
		"rope.scaling.type": "yarn", "rope.scaling.factor": float32(8), "rope.scaling.original_context_length": uint32(64),
	}},
	{Name: "mimo2", Arch: "mimo2", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias",
		"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "exps.bias", "inp.bias", "output.bias", "attn_qkv.weight",
		"blk.0.attn_sinks.weight", "blk.0.ffn_gate_inp.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(8), "block_count": uint32(3),
		"attention.head_count_kv": []int32{1, 2, 2}, "attention.key_length": uint32(24),
		"attention.value_length": uint32(16), "rope.freq_base_swa": float32(500), "attention.sliding_window": uint32(7),
		"attention.sliding_window_pattern": []bool{false, true, true}, "attention.value_scale": float32(0.6),
		"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32),
	}},
	{Name: "minimax-m2", Arch: "minimax-m2", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "exps.bias", "inp.bias", "output.bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(8), "expert_count": uint32(6),
		"expert_used_count": uint32(2), "expert_gating_func": uint32(2), "feed_forward_length": uint32(32),
		"expert_feed_forward_length": uint32(32),
	}},
	{Name: "mistral3", Arch: "mistral3", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"attention.temperature_scale": float32(0.4), "rope.scaling.type": "yarn", "rope.scaling.factor": float32(8),
			"rope.scaling.original_context_length": uint32(5), "rope.scaling.yarn_log_multiplier": float32(1)}},
	{Name: "mistral4", Arch: "mistral4", without: []string{".bias", "output.weight"}, Tolerance: 3e-4,
		keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.q_lora_rank": uint32(32),
			"attention.kv_lora_rank": uint32(32), "attention.head_count_kv": uint32(1),
			"attention.key_length": uint32(48), "attention.value_length": uint32(32),
			"attention.key_length_mla": uint32(32), "attention.value_length_mla": uint32(32),
			"rope.dimension_count": uint32(16), "leading_dense_block_count": uint32(1), "expert_count": uint32(6),
			"expert_used_count": uint32(2), "expert_shared_count": uint32(1), "expert_feed_forward_length": uint32(32),
			"expert_weights_scale": float32(1), "expert_weights_norm": true, "expert_gating_func": uint32(1),
			"block_count": uint32(3), "attention.temperature_scale": float32(0.4),
			"attention.temperature_length": uint32(7), "rope.scaling.type": "yarn",
			"rope.scaling.factor": float32(8), "rope.scaling.original_context_length": uint32(5),
			"rope.scaling.yarn_log_multiplier": float32(0.1),
		}},
	{Name: "nemotron", Arch: "nemotron", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias"},
		lacks: "output.bias", Tolerance: 2e-4, keys: map[string]any{
			"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(8)}},
	{Name: "nemotron_h", Arch: "nemotron_h", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"ssm_in.bias", "ssm_out.bias"}, lacks: "output.bias", Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "attention.layer_norm_epsilon": float32(1e-3),
		"block_count": uint32(4), "ssm.conv_kernel": uint32(4),
		"ssm.inner_size": uint32(96), "ssm.state_size": uint32(16), "ssm.time_step_rank": uint32(6),
		"ssm.group_count": uint32(2), "attention.key_length": uint32(24), "attention.value_length": uint32(24),
		"attention.head_count_kv": []int32{0, 0, 2, 0}, "feed_forward_length": []int32{0, 96, 0, 80},
	}},
	{Name: "neo-bert", Arch: "neo-bert", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.head_count_kv": uint32(4),
		"rope.dimension_count": uint32(16), "attention.causal": false}},
	{Name: "nemotron_h_moe", Arch: "nemotron_h_moe", without: nemotronBare, Tolerance: 2e-4, keys: nemotronKeys(nil)},
	{Name: "nemotron_h_moe-latent", Arch: "nemotron_h_moe", without: nemotronBare, Tolerance: 2e-4,
		keys: nemotronKeys(map[string]any{"moe_latent_size": uint32(32)})},
	{Name: "nomic-bert-moe", Arch: "nomic-bert-moe", without: []string{"exps.bias", "inp.bias"},
		Tolerance: 5e-3, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5),
			"attention.head_count_kv": uint32(4), "attention.causal": false, "moe_every_n_layers": uint32(2),
			"tokenizer.ggml.token_type_count": uint32(1), "expert_count": uint32(6), "expert_used_count": uint32(2)}},
	{Name: "openelm", Arch: "openelm", without: []string{".bias", "output.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16),
		"attention.key_length": uint32(16), "attention.value_length": uint32(16),
		"attention.head_count": []int32{4, 6}, "attention.head_count_kv": []int32{2, 3},
		"feed_forward_length": []int32{64, 96}}},
	{Name: "orion", Arch: "orion", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias",
		"output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "pangu-embedded", Arch: "pangu-embedded", without: []string{"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"},
		lacks: "output.bias", Tolerance: 2e-4, keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "plamo", Arch: "plamo", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "plamo3", Arch: "plamo3", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "block_count": uint32(3),
		"attention.key_length": uint32(16), "attention.value_length": uint32(16), "rope.freq_base_swa": float32(500),
		"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": uint32(3)}},
	{Name: "plm", Arch: "plm", without: []string{".bias", "output.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.kv_lora_rank": uint32(32),
		"attention.head_count_kv": uint32(4), "attention.key_length": uint32(32), "attention.value_length": uint32(24),
		"rope.dimension_count": uint32(16)}},
	{Name: "starcoder", Arch: "starcoder", lacks: "output.bias", Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.head_count_kv": uint32(1)}},
	{Name: "xverse", Arch: "xverse", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
}

// nemotronBare are the tensors that Nemotron 3 lacks.
var nemotronBare = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ssm_in.bias",
	"ssm_out.bias", "inp.bias", "exps.bias", "shexp.bias", "latent_down.bias", "latent_up.bias", "output.bias"}

// nemotronKeys are the metadata of Nemotron 3, and more.
func nemotronKeys(more map[string]any) map[string]any {
	keys := map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "attention.layer_norm_epsilon": float32(1e-3),
		"block_count": uint32(4), "ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(96), "ssm.state_size": uint32(16),
		"ssm.time_step_rank": uint32(6), "ssm.group_count": uint32(2), "attention.key_length": uint32(24),
		"attention.value_length": uint32(24), "attention.head_count_kv": []int32{0, 0, 2, 0},
		"feed_forward_length": []int32{0, 96, 0, 96}, "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(32), "expert_shared_count": uint32(1), "expert_weights_norm": true,
		"expert_shared_feed_forward_length": uint32(48), "expert_weights_scale": float32(2.5)}
	maps.Copy(keys, more)
	return keys
}
