package backendtest

import "maps"

// mixtureKeys are the metadata of six experts of 32 features behind one dense layer of three, with those of more.
func mixtureKeys(more map[string]any) map[string]any {
	keys := map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(3),
		"leading_dense_block_count": uint32(1), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(32), "expert_shared_count": uint32(2), "expert_weights_scale": float32(1.5),
		"expert_weights_norm": true, "expert_gating_func": uint32(2), "vocab_size": uint32(512),
	}
	maps.Copy(keys, more)
	return keys
}

// unbiased are the endings of biases that mixtures may have beside that of the choice.
var unbiased = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_qkv.bias", "output.bias", "ffn_gate.bias",
	"ffn_up.bias", "ffn_down.bias", "exps.bias", "shexp.bias", "inp.bias", "attn_gate.bias", "rope_freqs.weight"}

// mixtureSpecimens are models with experts, and others that are more than their kin.
var mixtureSpecimens = []Specimen{
	{Name: "afmoe", Arch: "afmoe", without: unbiased, Tolerance: 1e-3, keys: mixtureKeys(map[string]any{
		"block_count": uint32(5), "attention.sliding_window": uint32(7)})},
	{Name: "arctic", Arch: "arctic", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"expert_count": uint32(6), "expert_used_count": uint32(2)}},
	{Name: "bailingmoe", Arch: "bailingmoe", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: mixtureKeys(map[string]any{"leading_dense_block_count": uint32(0), "expert_gating_func": uint32(1)})},
	{Name: "bailingmoe2", Arch: "bailingmoe2", without: unbiased, Tolerance: 2e-4, keys: mixtureKeys(map[string]any{
		"rope.dimension_count": uint32(8), "expert_shared_feed_forward_length": uint32(24)})},
	{Name: "cohere2moe", Arch: "cohere2moe", without: []string{".bias", "output.weight"}, Tolerance: 2e-4,
		keys: mixtureKeys(map[string]any{"attention.layer_norm_rms_epsilon": float32(0),
			"attention.layer_norm_epsilon": float32(1e-5), "logit_scale": float32(0.3), "block_count": uint32(4),
			"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": []bool{false, false, true, false}})},
	{Name: "deci", Arch: "deci", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "block_count": uint32(4),
		"attention.head_count": []int32{4, 4, 0, 4}, "attention.head_count_kv": []int32{2, 0, 0, 4},
		"feed_forward_length": []int32{96, 64, 96, 32}}},
	{Name: "deepseek", Arch: "deepseek", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: mixtureKeys(map[string]any{"expert_weights_scale": float32(1), "expert_weights_norm": false,
			"expert_gating_func": uint32(1)})},
	{Name: "dots1", Arch: "dots1", without: unbiased, Tolerance: 2e-4, keys: mixtureKeys(map[string]any{
		"attention.head_count_kv": uint32(4)})},
	{Name: "eurobert", Arch: "eurobert", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"attention.causal": false}},
	{Name: "exaone-moe", Arch: "exaone-moe", without: unbiased, Tolerance: 2e-4, keys: mixtureKeys(map[string]any{
		"block_count": uint32(5), "attention.sliding_window": uint32(7), "expert_shared_count": uint32(1),
		"expert_shared_feed_forward_length": uint32(48)})},
	{Name: "granitehybrid", Arch: "granitehybrid", without: append([]string{"ssm_in.bias", "ssm_out.bias"}, unbiased...),
		Tolerance: 2e-4, keys: hybridGranite(map[string]any{"rope.scaling.finetuned": false})},
	{Name: "granitehybrid-moe", Arch: "granitehybrid", without: append([]string{"ssm_in.bias", "ssm_out.bias",
		"exp_probs_b.bias"}, unbiased...), Tolerance: 2e-4, keys: hybridGranite(map[string]any{
		"expert_count": uint32(6), "expert_used_count": uint32(2), "feed_forward_length": uint32(32),
		"expert_shared_feed_forward_length": uint32(48)})},
	{Name: "grok", Arch: "grok", without: []string{".bias", "ffn_up.weight", "post_ffw_norm.weight"}, Tolerance: 1e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"expert_count": uint32(6), "expert_used_count": uint32(2)}},
	{Name: "grok-2", Arch: "grok", without: []string{".bias", "layer_output_norm.weight"}, Tolerance: 1e-3,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32),
			"logit_scale": float32(0.5), "embedding_scale": float32(8), "attention.output_scale": float32(0.2),
			"attn_logit_softcapping": float32(5), "final_logit_softcapping": float32(9)}},
	{Name: "hy_v3", Arch: "hy_v3", without: append([]string{"exp_probs_b.bias"}, unbiased...), Tolerance: 2e-4, keys: mixtureKeys(map[string]any{
		"expert_shared_feed_forward_length": uint32(48)})},
	{Name: "minicpm", Arch: "minicpm", without: []string{".bias", "output.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"rope.scaling.type": "longrope", "rope.scaling.original_context_length": uint32(512),
		"embedding_scale": float32(9), "residual_scale": float32(0.7), "logit_scale": float32(0.25)}},
	{Name: "minicpm3", Arch: "minicpm3", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "attention.q_lora_rank": uint32(32),
		"attention.kv_lora_rank": uint32(32), "attention.head_count_kv": uint32(4), "attention.key_length": uint32(32),
		"attention.value_length": uint32(24), "rope.dimension_count": uint32(16), "rope.scaling.type": "longrope",
		"rope.scaling.original_context_length": uint32(512)}},
}

// hybridGranite are the metadata of two Mamba-2 mixers and an attention between them, with those of more.
func hybridGranite(more map[string]any) map[string]any {
	keys := map[string]any{
		"block_count": uint32(3), "attention.head_count_kv": []int32{0, 2, 0}, "attention.scale": float32(0.2),
		"embedding_scale": float32(6), "residual_scale": float32(0.4), "logit_scale": float32(3),
	}
	maps.Copy(keys, hybridKeys)
	keys["ssm.inner_size"], keys["ssm.time_step_rank"] = uint32(128), uint32(8)
	maps.Copy(keys, more)
	return keys
}
