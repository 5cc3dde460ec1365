package synth

import "strings"

// Encoder is the hyper-parameters of encoders, which make vectors of texts.
type Encoder struct {
	TokenTypes int     `json:"type_vocab_size"`
	EncoderEps float64 `json:"layer_norm_eps"`
}

// encoder writes the keys of an encoder.
func (w writer) encoder(c *Config) {
	const mean = 1 // llama.cpp's number
	w.m.Set(w.prefix+"attention.causal", false)
	w.count("pooling_type", mean)
	w.m.Set("tokenizer.ggml.token_type_count", uint32(max(c.TokenTypes, 1)))
}

func (c *Config) hasEncoder(name string) bool {
	return families()[c.ModelType].mixer == encoder && (name == "token_types.weight" && c.TokenTypes > 0 ||
		c.ModelType == "nomic_bert" && strings.HasSuffix(name, ".attn_qkv.weight"))
}

// encoders are shapes of encoders.
func encoders() []Shape {
	bert := func(layers, width, heads int) Config {
		return Config{ModelType: "bert", Layers: layers, Width: width, FFN: 4 * width, Heads: heads, Vocab: 30522,
			Context: 512, Encoder: Encoder{TokenTypes: 2, EncoderEps: 1e-12}}
	}
	return []Shape{{"bert-base", bert(12, 768, 12)}, {"bert-large", bert(24, 1024, 16)}}
}
