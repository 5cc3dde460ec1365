package backendtest

import (
	"maps"
	"strings"
)

// indexer are the tensors of an indexer, beside those that they are as large as in models of indexedKeys.
var indexer = map[string][]string{
	"attn_norm.weight":     {"indexer.k_norm.weight", "indexer.k_norm.bias"},
	"ffn_gate_inp.weight":  {"indexer.proj.weight"},
	"attn_kv_a_mqa.weight": {"indexer.attn_k.weight"},
	"attn_q_b.weight":      {"indexer.attn_q_b.weight"},
}

// indexedKeys are the metadata of models with latent attention and an indexer, and more.
func indexedKeys(more map[string]any) map[string]any {
	all := map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.q_lora_rank": uint32(32),
		"attention.kv_lora_rank": uint32(48), "attention.head_count_kv": uint32(1), "attention.key_length": uint32(64),
		"attention.value_length": uint32(48), "attention.key_length_mla": uint32(96),
		"attention.value_length_mla": uint32(32), "rope.dimension_count": uint32(16), "leading_dense_block_count": uint32(0),
		"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_shared_count": uint32(1),
		"expert_feed_forward_length": uint32(32), "expert_weights_scale": float32(2.5), "expert_weights_norm": true,
		"attention.indexer.head_count": uint32(6), "attention.indexer.key_length": uint32(64),
		"attention.indexer.top_k": uint32(64),
	}
	maps.Copy(all, more)
	return all
}

// blockKeys are the metadata of models whose indexer chooses blocks, with so many dense layers first.
func blockKeys(dense uint32) map[string]any {
	return map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(8),
		"leading_dense_block_count": dense, "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_shared_count": uint32(1), "expert_feed_forward_length": uint32(32), "expert_weights_scale": float32(2),
		"attention.key_length": uint32(32), "attention.value_length": uint32(32),
		"expert_weights_norm": true, "expert_gating_func": uint32(2), "attention.indexer.head_count": uint32(2),
		"attention.indexer.key_length": uint32(32), "attention.indexer.top_k": uint32(16),
		"attention.indexer.block_size": uint32(8), "attention.indexer.local_blocks": uint32(1),
	}
}

// blockless are the tensors that models of blockKeys lack.
var blockless = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ffn_gate.bias", "ffn_up.bias",
	"ffn_down.bias", "exps.bias", "shexp.bias", "inp.bias", "output.bias"}

// laterSpecimens are models of the families from bitnet on, which came after xverse.
var laterSpecimens = []Specimen{
	{Name: "bitnet", Arch: "bitnet", without: []string{".bias", "output.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "bitnet-silu", Arch: "bitnet", without: []string{".bias", ".scale", "output.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "cogvlm", Arch: "cogvlm", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"attention.head_count_kv": uint32(4)}, beside: map[string][]string{"attn_qkv.weight": {"vis_attn_qkv.weight"},
		"attn_output.weight": {"vis_attn_output.weight"}, "ffn_gate.weight": {"vis_gate.weight"},
		"ffn_up.weight": {"vis_up.weight"}, "ffn_down.weight": {"vis_down.weight"}}},
	{Name: "deepseek2-ocr", Arch: "deepseek2-ocr", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16),
			"attention.head_count_kv": uint32(4), "block_count": uint32(3), "leading_dense_block_count": uint32(1),
			"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_shared_count": uint32(2),
			"expert_feed_forward_length": uint32(32)}},
	{Name: "deepseek32", Arch: "deepseek32", without: []string{".bias", "output.weight"}, Tolerance: 3e-4,
		keys: indexedKeys(map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(8),
			"rope.scaling.original_context_length": uint32(64), "rope.scaling.yarn_log_multiplier": float32(0.1),
			"expert_gating_func": uint32(2)}), beside: indexer},
	{Name: "glm-dsa", Arch: "glm-dsa", without: []string{".bias", "output.weight"}, Tolerance: 3e-4,
		keys: indexedKeys(nil), beside: indexer},
	// llama.cpp divides the variance of gates by one less than transformers does, and looks GELU up in a table: few layers
	// of many features are near to it, 22, of which two share what they attend to, are not.
	{Name: "gemma3n", Arch: "gemma3n", without: []string{".bias", "output.weight"}, Tolerance: 0.2, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(22),
		"attention.sliding_window": uint32(7), "feed_forward_length": uint32(1024), "rope.freq_base": float32(1e6),
		"attention.head_count_kv": uint32(4)}, beside: map[string][]string{
		"attn_q.weight": {"attn_k.weight", "attn_v.weight"}, "attn_q_norm.weight": {"attn_k_norm.weight"}}},
	{Name: "gemma3n-few", Arch: "gemma3n", without: []string{".bias", "output.weight"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(3),
		"attention.sliding_window": uint32(7), "feed_forward_length": uint32(4096), "rope.freq_base": float32(1e6),
		"attention.head_count_kv": uint32(4)}, beside: map[string][]string{
		"attn_q.weight": {"attn_k.weight", "attn_v.weight"}, "attn_q_norm.weight": {"attn_k_norm.weight"}}},
	{Name: "granite_swa", Arch: "granite_swa", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "logit_scale": float32(1.7),
		"residual_scale": float32(0.6), "embedding_scale": float32(2), "attention.scale": float32(0.3),
		"block_count": uint32(3), "attention.sliding_window": uint32(7),
		"attention.sliding_window_pattern": []bool{true, false, true}, "attention.rope_pattern": []bool{true, false, true}}},
	// Its second mixture counts as nothing: llama.cpp computes another one.
	{Name: "grovemoe", Arch: "grovemoe", without: groveBare, Tolerance: 3e-4, keys: groveKeys(3, 1e-9)},
	{Name: "hrm_text", Arch: "hrm_text", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(12),
		"embedding_scale": float32(3), "hrm.layers_per_stack": uint32(2), "hrm.h_cycles": uint32(2),
		"hrm.l_cycles": uint32(2), "hrm.prefix_lm": false}},
	{Name: "hunyuan_vl", Arch: "hunyuan_vl", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"rope.dimension_sections": []int32{2, 2, 2, 2}, "rope.scaling.alpha": float32(1000)}},
	{Name: "jina-bert-v3", Arch: "jina-bert-v3", without: []string{"attn_q.weight"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.head_count_kv": uint32(4),
		"rope.dimension_count": uint32(16), "attention.causal": false, "tokenizer.ggml.token_type_count": uint32(1)}},
	{Name: "laguna", Arch: "laguna", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias",
		"attn_gate.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "exps.bias", "shexp.bias", "inp.bias",
		"output.bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "block_count": uint32(4), "attention.sliding_window": uint32(7),
		"attention.head_count": []int32{4, 6, 6, 6}, "attention.key_length": uint32(16),
		"attention.value_length": uint32(16), "rope.dimension_count": uint32(8), "rope.dimension_count_swa": uint32(16),
		"rope.freq_base": float32(500000), "rope.freq_base_swa": float32(10000), "rope.scaling.type": "yarn",
		"rope.scaling.factor": float32(8), "rope.scaling.original_context_length": uint32(64),
		"leading_dense_block_count": uint32(1), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(32), "expert_shared_feed_forward_length": uint32(48),
		"expert_weights_scale": float32(2.5), "expert_weights_norm": true}},
	{Name: "laguna-features", Arch: "laguna", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias",
		"attn_output.bias", "attn_gate.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "exps.bias", "shexp.bias",
		"inp.bias", "output.bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16),
		"leading_dense_block_count": uint32(1), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(32), "expert_shared_feed_forward_length": uint32(32),
		"expert_weights_scale": float32(1), "expert_weights_norm": true}},
	{Name: "maple", Arch: "maple", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": uint32(3),
		"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": []bool{true, false, true},
		"rope.freq_base_swa": float32(500), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(32), "swiglu_clamp_exp": []float32{0.1, 0, 0.3}}},
	{Name: "minimax-m3", Arch: "minimax-m3", without: blockless, Tolerance: 2e-4, keys: blockKeys(0),
		beside: map[string][]string{"attn_k.weight": {"indexer.q_proj.weight"},
			"ffn_gate_shexp.weight": {"indexer.k_proj.weight"}, "attn_q_norm.weight": {"indexer.q_norm.weight"},
			"attn_k_norm.weight": {"indexer.k_norm.weight"}}},
	{Name: "minimax-m3-dense", Arch: "minimax-m3", without: blockless, Tolerance: 2e-4, keys: blockKeys(2)},
	{Name: "modern-bert-silu", Arch: "modern-bert", without: []string{".bias"}, lacks: "blk.0.attn_norm.weight",
		Tolerance: 5e-3, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5), "block_count": uint32(2),
			"rope.dimension_count": uint32(16), "attention.sliding_window": uint32(9), "rope.freq_base": float32(160000),
			"attention.head_count_kv": uint32(4), "pooling_type": uint32(2), "attention.causal": false,
			"rope.freq_base_swa": float32(10000), "hidden_activation": "silu"}},
	{Name: "muse-glimmer", Arch: "muse-glimmer", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "block_count": uint32(3),
		"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": []bool{true, true, false},
		"rope.freq_base_swa": float32(500), "logit_scale": float32(0.6), "final_logit_softcapping": float32(3)}},
	{Name: "nanbeige", Arch: "nanbeige", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "num_loops": uint32(3),
		"skip_loop_final_norm": false}},
	{Name: "nanbeige-bare", Arch: "nanbeige", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"num_loops": uint32(2), "skip_loop_final_norm": true}},
	{Name: "paddleocr", Arch: "paddleocr", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_sections": []int32{2, 3, 3, 0}}},
	{Name: "spark2_5", Arch: "spark2_5", without: []string{".bias", "attn_qkv.weight", "norm.weight"}, Tolerance: 5e-3,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
			"attention.head_count": []int32{6, 4}, "attention.head_count_kv": []int32{3, 2},
			"attention.key_length": uint32(16), "attention.value_length": uint32(16),
			"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": []bool{true, false},
			"rope.freq_base_swa": float32(500)}},
	{Name: "step35", Arch: "step35", without: []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias",
		"attn_gate.bias", "attn_qkv.weight", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "exps.bias", "shexp.bias",
		"inp.bias", "output.bias", "blk.0.ffn_gate_inp.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "block_count": uint32(4),
		"attention.head_count": []int32{4, 6, 6, 4}, "attention.head_count_kv": []int32{2, 3, 2, 2},
		"attention.key_length": uint32(16), "attention.value_length": uint32(16), "attention.sliding_window": uint32(7),
		"attention.sliding_window_pattern": []bool{false, true, true, false}, "rope.freq_base": float32(5e6),
		"rope.freq_base_swa": float32(10000), "expert_count": uint32(6), "expert_used_count": uint32(2),
		"expert_feed_forward_length": uint32(32), "expert_shared_feed_forward_length": uint32(48),
		"expert_weights_scale": float32(2.5), "expert_weights_norm": true,
		"swiglu_clamp_exp": []float32{0, 0, 0.1, 0.2}, "swiglu_clamp_shexp": []float32{0, 0.1, 0, 0.2}}},
	{Name: "t5", Arch: "t5", without: []string{".bias", "1.attn_rel_b.weight"}, Tolerance: 8e-3,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.head_count_kv": uint32(4),
			"attention.relative_buckets_count": uint32(32), "attention.key_length": uint32(24),
			"attention.value_length": uint32(24), "decoder_start_token_id": uint32(0), "decoder_block_count": uint32(1)}},
	{Name: "t5-relu", Arch: "t5", without: []string{".bias", "ffn_gate.weight", "output.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.head_count_kv": uint32(4),
			"attention.relative_buckets_count": uint32(16), "decoder_start_token_id": uint32(3)}},
	{Name: "t5encoder", Arch: "t5encoder", without: []string{".bias", "1.attn_rel_b.weight"}, Tolerance: 5e-3,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.head_count_kv": uint32(4),
			"attention.relative_buckets_count": uint32(32), "attention.key_length": uint32(24),
			"attention.value_length": uint32(24), "attention.causal": false}},
	{Name: "t5encoder-relu", Arch: "t5encoder", without: []string{".bias", "ffn_gate.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.head_count_kv": uint32(4),
			"attention.relative_buckets_count": uint32(16), "attention.causal": false}},
	{Name: "dots3note", Arch: "dots3note", without: kimiBare, Tolerance: 3e-4,
		keys: indexedKeys(map[string]any{"block_count": uint32(2), "attention.head_count": []uint32{4, 6},
			"attention.head_count_kv": uint32(1), "attention.kv_lora_rank_swa": uint32(32),
			"attention.key_length_swa": uint32(48), "attention.value_length_swa": uint32(32),
			"attention.key_length_mla_swa": uint32(40), "attention.value_length_mla_swa": uint32(16),
			"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": []bool{false, true},
			"rope.freq_base_swa": float32(500), "expert_gating_func": uint32(2),
			"attention.indexer.types": []bool{true, false}}),
		beside: map[string][]string{"blk.0.attn_norm.weight": {"indexer.k_norm.weight", "indexer.k_norm.bias"},
			"blk.0.ffn_gate_inp.weight": {"indexer.proj.weight"}, "blk.0.attn_kv_a_mqa.weight": {"indexer.attn_k.weight"},
			"blk.0.attn_q_b.weight": {"indexer.attn_q_b.weight"}}},
	{Name: "hy_v4", Arch: "hy_v4", without: []string{".bias"}, Tolerance: 5e-4, keys: coupledKeys(), shaped: coupledShapes},
	{Name: "talkie", Arch: "talkie", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16),
		"logit_scale": float32(0.7)}},
}

// Grove is a layer of GroveMoE whose second mixture counts.
var Grove = Specimen{Name: "grovemoe-both", Arch: "grovemoe", without: groveBare, keys: groveKeys(1, 0.4)}

// groveBare are the tensors that GroveMoE lacks.
var groveBare = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "exps.bias", "inp.bias",
	"output.bias"}

// groveKeys are the metadata of GroveMoE with so many layers, whose second mixture is multiplied by a factor.
func groveKeys(layers uint32, factor float32) map[string]any {
	return map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "block_count": layers,
		"expert_count": uint32(8), "expert_used_count": uint32(3), "expert_feed_forward_length": uint32(32),
		"expert_chunk_feed_forward_length": uint32(32), "experts_per_group": uint32(2), "expert_group_scale": factor}
}

// coupledKeys are the metadata of Hunyuan 4.
func coupledKeys() map[string]any {
	keys := indexedKeys(map[string]any{"block_count": uint32(3), "leading_dense_block_count": uint32(1),
		"hyper_connection.count": uint32(3), "hyper_connection.epsilon": float32(0.01),
		"hyper_connection.magnitude": float32(1.7), "swiglu_clamp_exp": []float32{0, 0.2, 0}, "expert_gating_func": uint32(2)})
	maps.DeleteFunc(keys, func(key string, _ any) bool { return strings.HasPrefix(key, "attention.indexer.") })
	return keys
}

// coupledShapes are the shapes of factors of sigmoids.
func coupledShapes(name string) []int {
	switch {
	case strings.HasPrefix(name, "output_hc_scale"):
		return []int{1}
	case strings.Contains(name, "_scale.weight"):
		return []int{2}
	}
	return nil
}
