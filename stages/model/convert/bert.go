package convert

import (
	"encoding/json"
	"strconv"
)

// berts are encoders: BERT and Nomic's.
func berts() []family {
	names := map[string]rule{
		"embeddings.word_embeddings":       as("token_embd"),
		"embeddings.position_embeddings":   as("position_embd"),
		"embeddings.token_type_embeddings": as("token_types"),
		"embeddings.LayerNorm":             as("token_embd_norm"),
		"embeddings.LayerNorm.gamma":       as("token_embd_norm.weight"),
		"embeddings.LayerNorm.beta":        as("token_embd_norm.bias"),
		"embeddings.position_ids":          {},
		"pooler.dense":                     {},
		"cls.predictions.bias":             {},

		"encoder.layer.*.attention.self.query":       as("blk.*.attn_q"),
		"encoder.layer.*.attention.self.key":         as("blk.*.attn_k"),
		"encoder.layer.*.attention.self.value":       as("blk.*.attn_v"),
		"encoder.layer.*.attention.output.dense":     as("blk.*.attn_output"),
		"encoder.layer.*.attention.output.LayerNorm": as("blk.*.attn_output_norm"),
		"encoder.layer.*.intermediate.dense":         as("blk.*.ffn_up"),
		"encoder.layer.*.output.dense":               as("blk.*.ffn_down"),
		"encoder.layer.*.output.LayerNorm":           as("blk.*.layer_output_norm"),

		"emb_ln":                         as("token_embd_norm"),
		"encoder.layers.*.attn.Wqkv":     as("blk.*.attn_qkv"),
		"encoder.layers.*.attn.out_proj": as("blk.*.attn_output"),
		"encoder.layers.*.norm1":         as("blk.*.attn_output_norm"),
		"encoder.layers.*.norm2":         as("blk.*.layer_output_norm"),
		"encoder.layers.*.mlp.fc11":      as("blk.*.ffn_up"),
		"encoder.layers.*.mlp.fc12":      as("blk.*.ffn_gate"),
		"encoder.layers.*.mlp.fc2":       as("blk.*.ffn_down"),
	}
	for _, stem := range []string{"predictions.decoder", "predictions.transform.dense", "predictions.transform.LayerNorm",
		"seq_relationship"} {
		names["cls."+stem] = rule{} // they guess words, for training
	}
	one := func(arch string, usual func(*converter), classes ...string) family {
		return family{arch: arch, classes: classes, prefixes: []string{"bert."}, noUsualNames: true, names: names, usual: usual,
			keys: func(c *converter) {
				c.set("attention.causal", false)
				poolingKey(c)
			}}
	}
	return []family{
		one("bert", nil, "BertModel", "BertForMaskedLM"),
		one("nomic-bert", nomicKeys, "NomicBertModel"),
	}
}

// nomicKeys corrects the context: that of the configuration is what scaling would reach.
func nomicKeys(c *converter) {
	o := c.config
	if trained := o.intOr(2048, "max_trained_positions"); o.int("n_positions") > trained {
		o.values["n_positions"] = json.Number(strconv.Itoa(trained))
	}
	c.usualKeys()
}
