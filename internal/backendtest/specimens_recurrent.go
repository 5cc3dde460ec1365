package backendtest

import (
	"maps"
	"strings"
)

// recurrentSpecimens are models whose states' values decay each at its own rate.
var recurrentSpecimens = []Specimen{
	{Name: "mamba", Arch: "mamba", without: []string{"ssm_in.bias", "ssm_x.bias", "ssm_out.bias", "output.bias",
		"dt_norm.weight", "b_norm.weight", "c_norm.weight"}, Tolerance: 2e-4, keys: selectiveKeys(nil)},
	{Name: "jamba", Arch: "jamba", without: []string{"ssm_in.bias", "ssm_x.bias", "ssm_out.bias", "output.bias",
		"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias",
		"exps.bias", "inp.bias", "output.weight", "token_embd.bias"}, lacks: "blk.0.ffn_gate_inp.weight", Tolerance: 2e-4,
		keys: selectiveKeys(map[string]any{"block_count": uint32(3), "attention.head_count_kv": []int32{0, 2, 0},
			"expert_count": uint32(6), "expert_used_count": uint32(2)})},
	{Name: "plamo2", Arch: "plamo2", without: []string{"ssm_in.bias", "ssm_x.bias", "ssm_out.bias", "ssm_conv1d.bias",
		"output.bias", "attn_qkv.bias", "attn_output.bias", "ffn_up.bias", "ffn_down.bias"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "block_count": uint32(3),
			"attention.head_count_kv": []int32{0, 2, 0},
			"attention.key_length":    uint32(16), "attention.value_length": uint32(16), "rope.dimension_count": uint32(16),
			"ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(128), "ssm.state_size": uint32(16),
			"ssm.time_step_rank": uint32(8), "ssm.group_count": uint32(0)},
		shaped: func(name string) []int {
			if strings.HasSuffix(name, ".ssm_a") || strings.HasSuffix(name, ".ssm_d") {
				return []int{8}
			}
			return nil
		}},
	{Name: "rwkv6", Arch: "rwkv6", without: []string{".bias"}, Tolerance: 2e-4,
		keys: rwkv6Keys(map[string]any{"block_count": uint32(4), "rescale_every_n_layers": uint32(2),
			"attention.head_count": uint32(0), "attention.head_count_kv": uint32(0),
			"attention.layer_norm_epsilon": float32(1e-5)}), shaped: fusedOf(64, 5)},
	{Name: "rwkv6-early", Arch: "rwkv6", without: []string{".bias", "lerp_fused.weight"}, Tolerance: 2e-4,
		keys: rwkv6Keys(map[string]any{"attention.head_count": uint32(0), "attention.head_count_kv": uint32(0),
			"attention.layer_norm_epsilon": float32(1e-5)})},
	{Name: "rwkv6qwen2", Arch: "rwkv6qwen2", without: []string{"output.bias", "gate.bias", "w1.bias", "w2.bias",
		"output.bias", "ffn_up.bias", "ffn_down.bias"}, Tolerance: 2e-4, keys: rwkv6Keys(map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "token_shift_count": uint32(1)}), shaped: fusedOf(64, 5)},
	{Name: "rwkv7", Arch: "rwkv7", without: []string{".bias"}, Tolerance: 2e-4, beside: rwkv7Unread,
		keys: rwkv7Keys(map[string]any{"attention.head_count": uint32(0), "attention.layer_norm_epsilon": float32(1e-5),
			"block_count": uint32(3), "attention.gate_lora_rank": uint32(24)}), shaped: fusedOf(128, 6)},
	{Name: "arwkv7", Arch: "arwkv7", without: []string{".bias", "time_mix_ln.weight"}, Tolerance: 2e-4,
		beside: rwkv7Unread, shaped: fusedOf(128, 5),
		keys: rwkv7Keys(map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "token_shift_count": uint32(1)})},
	{Name: "kimi-linear", Arch: "kimi-linear", without: kimiBare, Tolerance: 3e-4, keys: kimiKeys(nil),
		shaped: convolvedAlone},
	{Name: "kimi-k3", Arch: "kimi-k3", without: append([]string{"routed_down.bias", "routed_up.bias", "g_b.weight",
		"res_score.bias"}, kimiBare...), Tolerance: 3e-4, keys: kimiKeys(map[string]any{
		"attention.q_lora_rank": uint32(24), "kda.gate_lower_bound": float32(-5), "expert_weights_norm": true,
		"block_count": uint32(5), "attention.head_count_kv": []int32{0, 1, 0, 0, 1}, "attn_res.block_size": uint32(2),
		"expert_latent_length": uint32(48), "expert_shared_count": uint32(2), "activation.situ_beta": float32(2),
		"activation.situ_linear_beta": float32(3)}), shaped: plainDecays,
		beside: map[string][]string{"blk.0.attn_norm.weight": {"attn_res_score.weight"}}},
	{Name: "kimi-k3-plain", Arch: "kimi-k3", without: append([]string{"g_b.weight", "shexp.weight", "attn_q_a_norm.weight",
		"attn_gate.weight", "routed_norm.weight"}, kimiBare...), Tolerance: 3e-4, keys: kimiKeys(map[string]any{
		"attn_res.block_size": uint32(0), "activation.situ_beta": float32(0.4), "activation.situ_linear_beta": float32(0)}),
		shaped: plainDecays},
	{Name: "bailingmoe3", Arch: "bailingmoe3", without: append([]string{"f_b.weight", "g_b.weight", "ssm_g.weight"},
		kimiBare...), Tolerance: 3e-4, keys: kimiKeys(map[string]any{"attention.q_lora_rank": uint32(24),
		"kda.gate_lower_bound": float32(-5), "expert_weights_norm": true}), shaped: convolvedAlone},
	{Name: "minimax-01", Arch: "minimax-01", without: append([]string{"attn_qkv.bias"}, kimiBare...), Tolerance: 5e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "block_count": uint32(4),
			"full_attention_interval": uint32(2), "residual_scale": float32(3.5), "rope.dimension_count": uint32(8),
			"attention.key_length": uint32(24), "attention.value_length": uint32(24), "expert_count": uint32(6),
			"expert_used_count": uint32(2)}},
	{Name: "qwen4exp", Arch: "qwen4exp", without: hyperBare, Tolerance: 5e-4, keys: hyperKeys(gramKeys),
		beside: map[string][]string{"attn_k.weight": {"indexer.q_proj.weight", "indexer.k_proj.weight"},
			"attn_q_norm.weight": {"indexer.q_norm.weight", "indexer.k_norm.weight"}}},
	{Name: "qwen4exp-plain", Arch: "qwen4exp", without: hyperBare, Tolerance: 5e-4, keys: hyperKeys(nil),
		beside: map[string][]string{"attn_k.weight": {"indexer.q_proj.weight", "indexer.k_proj.weight"},
			"attn_q_norm.weight": {"indexer.q_norm.weight", "indexer.k_norm.weight"}}},
}

// hyperKeys are the metadata of models with several streams.
func hyperKeys(more map[string]any) map[string]any {
	keys := map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(8),
		"rope.dimension_sections": []int32{2, 1, 1, 0}, "block_count": uint32(4), "full_attention_interval": uint32(2),
		"ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(64), "ssm.state_size": uint32(16),
		"ssm.time_step_rank": uint32(4), "ssm.group_count": uint32(2), "attention.key_length": uint32(16),
		"attention.value_length": uint32(16), "attention.head_count_kv": uint32(1), "expert_count": uint32(6),
		"expert_used_count": uint32(2), "expert_feed_forward_length": uint32(32),
		"expert_shared_feed_forward_length": uint32(48), "hyper_connection.count": uint32(3),
		"hyper_connection.low_rank": uint32(8), "attention.indexer.head_count": uint32(1),
		"attention.indexer.key_length": uint32(16), "attention.indexer.top_k": uint32(64),
		"attention.compress_ratios": []uint32{0, 4, 0, 4}}
	maps.Copy(keys, more)
	return keys
}

// gramKeys are the metadata of a table of what is known of the last tokens.
var gramKeys = map[string]any{"ple.layers": []uint32{2}, "ple.ngram_size": uint32(3), "ple.heads_per_ngram": uint32(2),
	"ple.conv_kernel": uint32(4), "ple.eos_token_id": uint32(131), "embedding_length_per_layer_input": uint32(16),
	"ple.layer_multipliers": []uint64{1<<63 + 12345, 987654321, 77777777777}, "ple.head_offsets": []uint64{0, 61, 132, 205},
	"ple.head_vocab_sizes": []uint64{61, 71, 73, 79}}

// hyperBare are the tensors that models with several streams lack.
var hyperBare = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "attn_qkv.bias",
	"attn_gate.bias", "ssm_in.weight", "ssm_in.bias", "ssm_out.bias", "ssm_conv1d.bias", "ple_conv1d.bias",
	"ssm_ba.weight", "alpha.bias", "beta.bias", "_down.bias", "_up.bias", "inject.bias", "key.bias", "value.bias",
	"exps.bias", "shexp.bias", "inp.bias", "output.bias", "hc_inject.weight"}

// kimiBare are the tensors that models with Kimi Delta Attention lack.
var kimiBare = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "attn_kv_a_mqa.bias",
	"attn_q_a.bias", "attn_q_b.bias", "attn_gate.bias", "conv1d_q.bias", "conv1d_k.bias", "conv1d_v.bias", "f_a.bias",
	"f_b.bias", "g_a.bias", "g_b.bias", "ssm_g.bias", "beta.bias", "exps.bias", "shexp.bias", "inp.bias",
	"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "output.bias"}

// kimiKeys are the metadata of models with Kimi Delta Attention beside latent attention, and more.
func kimiKeys(more map[string]any) map[string]any {
	keys := map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-5), "block_count": uint32(3),
		"attention.head_count_kv": []int32{0, 1, 0}, "attention.kv_lora_rank": uint32(32),
		"attention.key_length": uint32(48), "attention.value_length": uint32(32),
		"attention.key_length_mla": uint32(32), "attention.value_length_mla": uint32(16),
		"rope.dimension_count": uint32(16), "ssm.conv_kernel": uint32(4), "kda.head_dim": uint32(16),
		"expert_count": uint32(6), "expert_used_count": uint32(2), "expert_shared_count": uint32(1),
		"expert_feed_forward_length": uint32(32), "expert_weights_scale": float32(2.4), "expert_gating_func": uint32(2),
		"leading_dense_block_count": uint32(1)}
	maps.Copy(keys, more)
	return keys
}

// convolvedAlone are the shapes of convolutions of Q, K and V, each on its own.
func convolvedAlone(name string) []int {
	if strings.Contains(name, "ssm_conv1d_") {
		return []int{4, 1, 64, 1}
	}
	return nil
}

// plainDecays are the shapes of Kimi K3.
func plainDecays(name string) []int {
	if strings.HasSuffix(name, ".ssm_a") {
		return []int{4}
	}
	return convolvedAlone(name)
}

// selectiveKeys are the metadata of a Mamba mixer, with those of more.
func selectiveKeys(more map[string]any) map[string]any {
	keys := map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "ssm.conv_kernel": uint32(4),
		"ssm.inner_size": uint32(128), "ssm.state_size": uint32(8), "ssm.time_step_rank": uint32(12)}
	maps.Copy(keys, more)
	return keys
}

func rwkv6Keys(more map[string]any) map[string]any {
	keys := map[string]any{"wkv.head_size": uint32(16), "time_mix_extra_dim": uint32(8), "time_decay_extra_dim": uint32(12)}
	maps.Copy(keys, more)
	return keys
}

// rwkv7Keys has heads of 64 features: llama.cpp computes no others, and reads past the ends of smaller ones.
func rwkv7Keys(more map[string]any) map[string]any {
	keys := map[string]any{"wkv.head_size": uint32(64), "embedding_length": uint32(128),
		"attention.decay_lora_rank": uint32(12),
		"attention.iclr_lora_rank":  uint32(20), "attention.value_residual_mix_lora_rank": uint32(28)}
	maps.Copy(keys, more)
	return keys
}

// rwkv7Unread are tensors by which the first layer's values would be mixed with themselves.
var rwkv7Unread = map[string][]string{"time_mix_a0.weight": {"time_mix_v0.weight"},
	"time_mix_a1.weight": {"time_mix_v1.weight"}, "time_mix_a2.weight": {"time_mix_v2.weight"}}

// fusedOf are the shapes of RWKV's tables of so many mixtures.
func fusedOf(width, n int) func(name string) []int {
	return func(name string) []int {
		if strings.HasSuffix(name, "lerp_fused.weight") {
			return []int{width, 1, 1, n}
		}
		return nil
	}
}
