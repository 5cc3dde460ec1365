package backendtest

// laterSpecimens are models of the families from bitnet on, which came after xverse.
var laterSpecimens = []Specimen{
	{Name: "bitnet", Arch: "bitnet", without: []string{".bias", "output.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "bitnet-silu", Arch: "bitnet", without: []string{".bias", ".scale", "output.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "cogvlm", Arch: "cogvlm", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"attention.head_count_kv": uint32(4)}, beside: map[string]string{"attn_qkv.weight": "vis_attn_qkv.weight",
		"attn_output.weight": "vis_attn_output.weight", "ffn_gate.weight": "vis_gate.weight",
		"ffn_up.weight": "vis_up.weight", "ffn_down.weight": "vis_down.weight"}},
	{Name: "deepseek2-ocr", Arch: "deepseek2-ocr", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16),
			"attention.head_count_kv": uint32(4), "block_count": uint32(3), "leading_dense_block_count": uint32(1),
			"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_shared_count": uint32(2),
			"expert_feed_forward_length": uint32(32)}},
	{Name: "granite_swa", Arch: "granite_swa", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "logit_scale": float32(1.7),
		"residual_scale": float32(0.6), "embedding_scale": float32(2), "attention.scale": float32(0.3),
		"block_count": uint32(3), "attention.sliding_window": uint32(7),
		"attention.sliding_window_pattern": []bool{true, false, true}, "attention.rope_pattern": []bool{true, false, true}}},
	{Name: "hunyuan_vl", Arch: "hunyuan_vl", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16),
		"rope.dimension_sections": []int32{2, 2, 2, 2}, "rope.scaling.alpha": float32(1000)}},
	{Name: "jina-bert-v3", Arch: "jina-bert-v3", without: []string{"attn_q.weight"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "attention.head_count_kv": uint32(4),
		"rope.dimension_count": uint32(16), "attention.causal": false, "tokenizer.ggml.token_type_count": uint32(1)}},
	{Name: "modern-bert-silu", Arch: "modern-bert", without: []string{".bias"}, lacks: "blk.0.attn_norm.weight",
		Tolerance: 5e-3, keys: map[string]any{"attention.layer_norm_epsilon": float32(1e-5), "block_count": uint32(2),
			"rope.dimension_count": uint32(16), "attention.sliding_window": uint32(9), "rope.freq_base": float32(160000),
			"attention.head_count_kv": uint32(4), "pooling_type": uint32(2), "attention.causal": false,
			"rope.freq_base_swa": float32(10000), "hidden_activation": "silu"}},
	{Name: "muse-glimmer", Arch: "muse-glimmer", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16), "block_count": uint32(3),
		"attention.sliding_window": uint32(7), "attention.sliding_window_pattern": []bool{true, true, false},
		"rope.freq_base_swa": float32(500), "logit_scale": float32(0.6), "final_logit_softcapping": float32(3)}},
	{Name: "paddleocr", Arch: "paddleocr", without: []string{".bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_sections": []int32{2, 3, 3, 0}}},
}
