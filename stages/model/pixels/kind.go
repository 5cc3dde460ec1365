package pixels

import (
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Kind is what a file holds of a model that makes pictures.
type Kind uint8

// What files hold. Reader is a model of language, whose rows Z-Image reads.
const (
	Other Kind = iota
	ZImageKind
	FluxKind
	AutoencoderKind
	ClipKind
	T5Kind
	Reader
)

// KindOf says what a file holds by the names of its tensors: those of diffusers and transformers, of their authors, or
// those that GGUF files have. A file that holds several parts is of the kind of its transformer.
func KindOf(file []ir.Tensor) Kind {
	first := Other
	for i := range file {
		k := kindOf(file[i].Name)
		if k != Other && (first == Other || k < first) {
			first = k
		}
	}
	return first
}

func kindOf(name string) Kind {
	switch fluxName(name) {
	case "transformer_blocks.0.attn.norm_added_q.weight":
		return FluxKind
	case "decoder.conv_in.weight", firstStage + "decoder.conv_in.weight":
		return AutoencoderKind
	case "cap_embedder.1.weight":
		return ZImageKind
	case "model.layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight":
		return Reader
	}
	switch {
	case clipName(name) == clipTable+".weight":
		return ClipKind
	case t5Name(name) == t5Bias+".weight":
		return T5Kind
	}
	return Other
}

// Guided says whether the FLUX.1 transformer of a file takes a guidance, as dev does, and schnell does not.
func Guided(file []ir.Tensor) bool {
	for i := range file {
		if fluxName(file[i].Name) == "time_text_embed.guidance_embedder.linear_1.weight" {
			return true
		}
	}
	return false
}

// ClipSettings are those of the CLIP model of a file without a config.json: as published, with as many heads as its
// width has room for.
func ClipSettings(file []ir.Tensor) TextSettings {
	const head = 64 // features, of all CLIP models
	s := ClipL
	if width, ok := columns(file, clipName, clipTable+".weight"); ok {
		s.Heads = width / head
	}
	return s
}

// T5Settings are those of the T5 model of a file without a config.json: as published, with as many heads as there are
// biases of a distance.
func T5Settings(file []ir.Tensor) TextSettings {
	s := T5XXL
	if heads, ok := columns(file, t5Name, t5Bias+".weight"); ok {
		s.Heads = heads
	}
	return s
}

// columns is the length of a matrix' rows, which has a name here.
func columns(file []ir.Tensor, rename func(string) string, name string) (n int, ok bool) {
	for i := range file {
		if rename(file[i].Name) == name && len(file[i].Shape) == 2 {
			return file[i].Shape[0], true
		}
	}
	return 0, false
}

// clipTable is CLIP's table of tokens.
const clipTable = "embeddings.token_embedding"

// t5Bias is the table of biases that all layers of T5 share.
const t5Bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"

// clipName is how a tensor of CLIP is called here: as transformers does, without what stands before all names.
func clipName(name string) string {
	for _, prefix := range []string{"text_encoders.clip_l.transformer.", "text_model."} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

// t5Parts are how transformers calls parts of a layer that GGUF files call as llama.cpp does.
var t5Parts = strings.NewReplacer("attn_norm.", "layer.0.layer_norm.", "attn_q.", "layer.0.SelfAttention.q.",
	"attn_k.", "layer.0.SelfAttention.k.", "attn_v.", "layer.0.SelfAttention.v.", "attn_o.", "layer.0.SelfAttention.o.",
	"attn_rel_b.", "layer.0.SelfAttention.relative_attention_bias.", "ffn_norm.", "layer.1.layer_norm.",
	"ffn_gate.", "layer.1.DenseReluDense.wi_0.", "ffn_up.", "layer.1.DenseReluDense.wi_1.",
	"ffn_down.", "layer.1.DenseReluDense.wo.")

// t5Name is how a tensor of T5 is called by transformers.
func t5Name(name string) string {
	name = strings.TrimPrefix(name, "text_encoders.t5xxl.transformer.")
	switch rest, ok := strings.CutPrefix(name, "enc.blk."); {
	case ok:
		return "encoder.block." + t5Parts.Replace(rest)
	case name == "token_embd.weight":
		return "shared.weight"
	case name == "enc.output_norm.weight":
		return "encoder.final_layer_norm.weight"
	}
	return name
}
