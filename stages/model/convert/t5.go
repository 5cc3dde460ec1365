package convert

import "strings"

// t5 is T5, FLAN-T5 and MADLAD-400: an encoder and a decoder.
func t5() family {
	names := map[string]rule{
		"shared": as("token_embd"), "lm_head": as("output"), "encoder.embed_tokens": {}, "decoder.embed_tokens": {},
		"encoder.final_layer_norm": as("enc.output_norm"), "decoder.final_layer_norm": as("dec.output_norm"),
		"decoder.block.*.layer.*.EncDecAttention.relative_attention_bias": {}, // the first T5 has it, and no use for it
	}
	parts := map[string]string{"encoder.block.*.layer.*.": "enc.blk.*.", "decoder.block.*.layer.*.": "dec.blk.*."}
	for from, to := range parts {
		for _, r := range [][2]string{
			{"SelfAttention.q", "attn_q"}, {"SelfAttention.k", "attn_k"}, {"SelfAttention.v", "attn_v"},
			{"SelfAttention.o", "attn_o"}, {"SelfAttention.relative_attention_bias", "attn_rel_b"},
			{"EncDecAttention.q", "cross_attn_q"}, {"EncDecAttention.k", "cross_attn_k"},
			{"EncDecAttention.v", "cross_attn_v"}, {"EncDecAttention.o", "cross_attn_o"},
			{"DenseReluDense.wi", "ffn_up"}, {"DenseReluDense.wi_0", "ffn_gate"}, {"DenseReluDense.wi_1", "ffn_up"},
			{"DenseReluDense.wo", "ffn_down"}, {"layer_norm", normOfPart},
		} {
			names[from+r[0]] = by(to+r[1], t5Part)
		}
	}
	return family{arch: "t5", classes: []string{"T5ForConditionalGeneration"}, names: names, noUsualNames: true,
		usual: t5Keys}
}

// normOfPart stands for the name of a norm, which tells by its number alone what it comes before.
const normOfPart = "norm_of_part"

// t5Part copies a tensor of a layer's part, whose number is no expert's.
func t5Part(c *converter, s *source) {
	norms := []string{"attn_norm", "cross_attn_norm", "ffn_norm"}
	if strings.HasPrefix(s.Name, "encoder.") {
		norms = []string{"attn_norm", "ffn_norm"}
	}
	part := s.expert
	if part < 0 || part >= len(norms) {
		failf("is of part %d of a layer, want 0 to %d", part, len(norms)-1)
	}
	s.expert, s.to = -1, strings.Replace(s.to, normOfPart, norms[part], 1)
	keep(c, s)
}

// t5Keys are the keys of T5. Its texts end with the token that ends an answer, though no template says so.
func t5Keys(c *converter) {
	const context, buckets = 512, 32 // of models that do not say
	o := c.config
	c.count("block_count", c.layers())
	c.count("decoder_block_count", o.intOr(c.layers(), "num_decoder_layers"))
	c.count("context_length", o.intOr(context, "n_positions"))
	c.count("embedding_length", o.need("d_model"))
	c.count("feed_forward_length", o.need("d_ff"))
	c.count("attention.head_count", o.need("num_heads"))
	c.count("attention.head_count_kv", o.need("num_heads"))
	c.count("attention.key_length", o.need("d_kv"))
	c.count("attention.value_length", o.need("d_kv"))
	c.count("attention.relative_buckets_count", o.intOr(buckets, "relative_attention_num_buckets"))
	eps := o.floatOr(1e-6, "layer_norm_epsilon")
	c.number("attention.layer_norm_epsilon", eps)
	c.number("attention.layer_norm_rms_epsilon", eps)
	c.count("decoder_start_token_id", o.intOr(0, "decoder_start_token_id"))
	c.meta.Set("general.file_type", c.options.FileType)
	const farthest = 128
	if far := o.intOr(farthest, "relative_attention_max_distance"); far != farthest {
		o.faultf("relative_attention_max_distance is %d, want %d: files do not carry it", far, farthest)
	}
	switch kind := o.string("feed_forward_proj"); kind {
	case "", "relu", "gated-gelu":
	default:
		o.faultf("feed_forward_proj is %.40q, want relu or gated-gelu", kind)
	}
	c.meta.Set("tokenizer.ggml.add_bos_token", false)
	c.meta.Set("tokenizer.ggml.add_eos_token", true)
}
