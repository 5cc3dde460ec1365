package synth

// encoderModels make vectors of texts.
var encoderModels = []keyed{
	{"eurobert-210m", "eurobert", sizes{12, 768, 3072, 12, 12, 128256, 8192}, nil, []key{{rms, 1e-5}, {turned, 64},
		{base, 250000.0}, {causal, false}, {pooling, 1}}},
	{"embeddinggemma-300m", "gemma-embedding", sizes{24, 768, 1152, 3, 1, 262144, 2048}, []string{"dense_2.weight",
		"dense_3.weight"}, []key{{rms, 1e-6}, {turned, 256}, {headWidth, 256}, {valueWidth, 256}, {base, 1e6}, {window, 512},
		{"dense_2_feat_in", 768}, {"dense_2_feat_out", 3072}, {"dense_3_feat_in", 3072}, {"dense_3_feat_out", 768},
		{causal, false}, {pooling, 1}}},
	{"jina-v2-base-en", "jina-bert-v2", sizes{12, 768, 3072, 12, 12, 30528, 8192}, []string{"attn_q.bias", "attn_k.bias",
		"attn_v.bias", "attn_output.bias", "ffn_down.bias", "ffn_gate.weight"}, []key{{norm, 1e-12}, {causal, false},
		{pooling, 1}, {tokenTypes, 2}}},
	{"jina-v3", "jina-bert-v3", sizes{24, 1024, 4096, 16, 16, 250002, 8194}, []string{"attn_qkv.weight", "bias",
		"token_types.weight"}, []key{{norm, 1e-5}, {turned, 64}, {base, 20000.0}, {causal, false}, {pooling, 1},
		{tokenTypes, 1}}},
	{"llama-embed-nemotron-8b", "llama-embed", sizes{32, 4096, 14336, 32, 8, 128256, 131072}, []string{"rope_freqs.weight"},
		[]key{{rms, 1e-5}, {turned, 128}, {base, 500000.0}, {causal, false}, {pooling, 1}}},
	{"modernbert-base", "modern-bert", sizes{22, 768, 1152, 12, 12, 50368, 8192}, []string{"attn_qkv.weight",
		"attn_norm.weight"}, []key{{norm, 1e-5}, {turned, 64}, {base, 160000.0}, {"rope.freq_base_swa", 10000.0},
		{window, 128}, {causal, false}, {pooling, 1}}},
	{"neobert", "neo-bert", sizes{28, 768, 2048, 12, 12, 30522, 4096}, []string{"attn_qkv.weight"}, []key{{rms, 1e-6},
		{turned, 64}, {causal, false}, {pooling, 2}}},
	{"nomic-embed-v2-moe", "nomic-bert-moe", sizes{12, 768, 3072, 12, 12, 250048, 2048}, []string{"attn_qkv.weight", "bias",
		"token_types.weight"}, []key{{norm, 1e-5}, {causal, false}, {pooling, 1}, {tokenTypes, 1}, {"moe_every_n_layers", 2},
		{experts, 8}, {expertsUsed, 2}}},
	{"flan-t5-base-encoder", "t5encoder", sizes{12, 768, 2048, 12, 12, 32128, 512}, []string{"enc.blk.0.attn_rel_b.weight",
		"ffn_gate.weight"}, []key{{rms, 1e-6}, {"attention.relative_buckets_count", 32}, {headWidth, 64}, {valueWidth, 64},
		{causal, false}, {pooling, 1}}},
}

// Keys of encoders.
const (
	causal     = "attention.causal"
	pooling    = "pooling_type"
	tokenTypes = "tokenizer.ggml.token_type_count"
)
