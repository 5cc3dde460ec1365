package backendtest

import (
	"maps"
	"strings"

	"github.com/sluice-ai/sluice/internal/quant"
)

// toldEnd ends the names of tables that name the experts of tokens, of which there are so many.
const (
	toldEnd     = "ffn_gate_tid2eid.weight"
	toldExperts = 6
)

// Type is the type that a tensor has in a file.
func (s *Specimen) Type(name string) quant.Type {
	if strings.HasSuffix(name, toldEnd) {
		return quant.I32
	}
	return quant.F32
}

// compressedSpecimens are models that attend to compressed positions.
var compressedSpecimens = []Specimen{
	{Name: "deepseek4", Arch: "deepseek4", without: []string{".bias"}, Tolerance: 5e-4, keys: compressedKeys(nil),
		shaped: compressedShapes, beside: map[string][]string{"blk.1.attn_q_b.weight": {"indexer.attn_q_b.weight"},
			"blk.1.ffn_gate_inp.weight":         {"indexer.proj.weight"},
			"blk.1.attn_compressor_kv.weight":   {"indexer_compressor_kv.weight"},
			"blk.1.attn_compressor_gate.weight": {"indexer_compressor_gate.weight"},
			"blk.1.attn_compressor_ape.weight":  {"indexer_compressor_ape.weight"},
			"blk.1.attn_compressor_norm.weight": {"indexer_compressor_norm.weight"}}},
}

// compressedKeys are the metadata of DeepSeek V4, and more.
func compressedKeys(more map[string]any) map[string]any {
	keys := map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "block_count": uint32(3),
		"attention.head_count": uint32(6), "attention.head_count_kv": uint32(1), "attention.key_length": uint32(64),
		"attention.value_length": uint32(64), "attention.q_lora_rank": uint32(32), "attention.sliding_window": uint32(8),
		"attention.output_group_count": uint32(2), "attention.output_lora_rank": uint32(16),
		"attention.compress_ratios": []uint32{0, 4, 128}, "attention.compress_rope_freq_base": float32(160000),
		"attention.indexer.head_count": uint32(6), "attention.indexer.key_length": uint32(64),
		"attention.indexer.top_k": uint32(256), "rope.dimension_count": uint32(16), "rope.freq_base": float32(10000),
		"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.original_context_length": uint32(128),
		"hyper_connection.count": uint32(4), "hyper_connection.sinkhorn_iterations": uint32(3),
		"hyper_connection.epsilon": float32(0.01), "hash_layer_count": uint32(1), "expert_count": uint32(toldExperts),
		"expert_used_count": uint32(2), "expert_shared_count": uint32(1), "expert_feed_forward_length": uint32(32),
		"expert_weights_scale": float32(1.5), "expert_weights_norm": true, "expert_gating_func": uint32(4),
		"swiglu_clamp_exp": []float32{0.3, 0.5, 0.4}}
	maps.Copy(keys, more)
	return keys
}

// compressedShapes are the shapes of DeepSeek V4.
func compressedShapes(name string) []int {
	switch {
	case strings.HasPrefix(name, "output_hc_scale"):
		return []int{1}
	case strings.Contains(name, "_scale.weight"):
		return []int{3}
	case strings.HasSuffix(name, "attn_output_a.weight"):
		return []int{192, 32}
	}
	return nil
}

// picturedSpecimens are models that have tokens of pictures, which they never choose.
var picturedSpecimens = []Specimen{
	{Name: "chameleon", Arch: "chameleon", vocab: 8300, without: append([]string{"attn_qkv.weight"}, plainBare...),
		Tolerance: 2e-4, keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5),
			"rope.dimension_count": uint32(16)}},
}

// plainBare are the tensors that models without biases of matrices lack.
var plainBare = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ffn_gate.bias", "ffn_up.bias",
	"ffn_down.bias", "output.bias"}
