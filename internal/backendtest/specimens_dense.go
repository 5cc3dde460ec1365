package backendtest

// denseSpecimens are models without experts of families whose kin came before them.
var denseSpecimens = []Specimen{
	{Name: "arcee", Arch: "arcee", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "baichuan", Arch: "baichuan", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 1e-3,
		keys: map[string]any{ // llama.cpp turns Q and K of models of 32 layers alone
			"attention.layer_norm_rms_epsilon": float32(1e-6), "block_count": uint32(32), "rope.dimension_count": uint32(16)}},
	{Name: "chatglm", Arch: "chatglm", without: []string{"attn_output.bias", "ffn_up.bias", "ffn_down.bias", "output.bias"},
		Tolerance: 2e-4, keys: map[string]any{
			"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(8)}},
	{Name: "codeshell", Arch: "codeshell", lacks: "output.bias", Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "exaone", Arch: "exaone", without: []string{".bias", "rope_freqs.weight"}, Tolerance: 2e-4,
		keys: map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "falcon", Arch: "falcon", without: []string{".bias", "attn_norm_2.weight", "output.weight"}, Tolerance: 5e-3,
		keys: map[string]any{
			"attention.layer_norm_epsilon": float32(1e-5), "attention.head_count_kv": uint32(1)}},
	{Name: "falcon-40b", Arch: "falcon", without: []string{".bias"}, Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5)}},
	{Name: "jais2", Arch: "jais2", lacks: "output.bias", Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "olmo", Arch: "olmo", without: []string{".bias", "output.weight", "attn_qkv.weight"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(16)}},
	{Name: "phi2", Arch: "phi2", Tolerance: 5e-3, keys: map[string]any{
		"attention.layer_norm_epsilon": float32(1e-5), "rope.dimension_count": uint32(8)}},
	{Name: "qwen", Arch: "qwen", without: []string{"attn_output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias",
		"output.bias"}, Tolerance: 2e-4, keys: map[string]any{
		"attention.layer_norm_rms_epsilon": float32(1e-6), "attention.head_count_kv": uint32(4),
		"feed_forward_length": uint32(192), "rope.dimension_count": uint32(16)}},
}
