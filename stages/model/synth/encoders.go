package synth

import (
	"math"
	"strings"
)

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

// answering writes the keys of T5, whose prompts an encoder reads.
func (w writer) answering(c *Config) {
	const buckets = 32
	w.count("decoder_block_count", c.Layers)
	w.count("attention.relative_buckets_count", buckets)
	w.count("decoder_start_token_id", 0)
}

// hasAnswering has networks gated, as all versions of T5 but the first have them.
func (c *Config) hasAnswering(name string) bool {
	return families()[c.ModelType].mixer == answering && strings.HasSuffix(name, ".ffn_gate.weight")
}

// unscaled makes T5's queries as small as others' scores are made.
func (c *Config) unscaled(t *Tensor) {
	if families()[c.ModelType].mixer == answering && strings.HasSuffix(t.Name, "attn_q.weight") {
		t.Dev /= math.Sqrt(float64(c.HeadDim))
	}
}

// answerings are shapes of models whose prompts an encoder reads, with as many layers as each of its parts has.
func answerings() []Shape {
	t5 := func(layers, width, ffn, heads int) Config {
		return Config{ModelType: "t5", Layers: layers, Width: width, FFN: ffn, Heads: heads, KVHeads: heads, HeadDim: 64,
			Vocab: 32128, Context: 512, Eps: 1e-6}
	}
	return []Shape{{"flan-t5-small", t5(8, 512, 1024, 6)}, {"flan-t5-base", t5(12, 768, 2048, 12)},
		{"flan-t5-xl", t5(24, 2048, 5120, 32)}}
}

// encoders are shapes of encoders.
func encoders() []Shape {
	bert := func(layers, width, heads int) Config {
		return Config{ModelType: "bert", Layers: layers, Width: width, FFN: 4 * width, Heads: heads, Vocab: 30522,
			Context: 512, Encoder: Encoder{TokenTypes: 2, EncoderEps: 1e-12}}
	}
	nomic := bert(12, 768, 12)
	nomic.ModelType, nomic.Vocab, nomic.Context, nomic.RopeTheta = "nomic_bert", 30528, 2048, 1000
	return []Shape{{"bert-base", bert(12, 768, 12)}, {"bert-large", bert(24, 1024, 16)}, {"nomic-embed-v1.5", nomic}}
}
