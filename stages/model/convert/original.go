package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/packed"
)

// In this file folders are read that Meta and Mistral publish for their own programs: params.json instead of
// config.json, consolidated.00.pth and so on or consolidated.safetensors, and names of their own.

// isOriginal says whether a folder is such a one: by its names, since Mistral's folders may have config.json too.
func isOriginal(f *Folder) bool {
	return f.Texts["params.json"] != nil && slices.ContainsFunc(f.Tensors, func(t element.Tensor) bool {
		_, name := shardOf(t.Name)
		return name == "tok_embeddings.weight"
	})
}

// beginOriginal reads what such a folder says that it is.
func (c *converter) beginOriginal() (err error) {
	if c.folder, c.made, err = joinShards(c.folder); err != nil {
		return err
	}
	if v3 := c.folder.Texts["tokenizer.model.v3"]; v3 != nil && c.folder.Texts["tokenizer.model"] == nil {
		texts := maps.Clone(c.folder.Texts)
		texts["tokenizer.model"] = v3
		c.folder.Texts = texts
	}
	c.config, err = originalConfig(c.folder)
	own := originalFamily()
	c.family = &own
	return err
}

// shardOf takes apart the name that a tensor has where several files have parts of it: the file's, and the tensor's.
func shardOf(name string) (file, tensor string) {
	if file, tensor, ok := strings.Cut(name, "/"); ok {
		return file, tensor
	}
	return "", name
}

// originalFamily is Llama's architecture with the names of these folders. Their queries and keys have pairs side by
// side, as ggml has them.
func originalFamily() family {
	names := map[string]rule{
		"tok_embeddings":             as("token_embd"),
		"norm":                       as("output_norm"),
		"output":                     as("output"),
		"rope.freqs":                 {},
		"layers.*.attention_norm":    as("blk.*.attn_norm"),
		"layers.*.ffn_norm":          as("blk.*.ffn_norm"),
		"layers.*.attention.wq":      as("blk.*.attn_q"),
		"layers.*.attention.wk":      as("blk.*.attn_k"),
		"layers.*.attention.wv":      as("blk.*.attn_v"),
		"layers.*.attention.wo":      as("blk.*.attn_output"),
		"layers.*.feed_forward.w1":   as("blk.*.ffn_gate"),
		"layers.*.feed_forward.w2":   as("blk.*.ffn_down"),
		"layers.*.feed_forward.w3":   as("blk.*.ffn_up"),
		"patch_merger.merging_layer": {}, "pre_mm_projector_norm": {},
		"layers.*.attention.inner_attention.rope.freqs": {},
	}
	for _, module := range []string{"feed_forward", "block_sparse_moe"} {
		names["layers.*."+module+".gate"] = as("blk.*.ffn_gate_inp")
		names["layers.*."+module+".experts.*.w1"] = as("blk.*.ffn_gate_exps")
		names["layers.*."+module+".experts.*.w2"] = as("blk.*.ffn_down_exps")
		names["layers.*."+module+".experts.*.w3"] = as("blk.*.ffn_up_exps")
	}
	return family{arch: "llama", noUsualNames: true, names: names, keys: llamaKeys, extra: llama3Factors,
		vocab: originalVocabulary}
}

// harmlessParams are keys of params.json that say nothing which matters here, or that shapes say too.
var harmlessParams = []string{"multiple_of", "ffn_dim_multiplier", "hidden_dim", "max_batch_size", "vision_encoder",
	"tied_embeddings", "vocab_size", "quantization_args"}

// originalConfig writes what params.json and shapes say as config.json would. What it does not know is refused: it may
// change what weights mean.
func originalConfig(f *Folder) (object, error) {
	p, err := parseObject("params.json", f.Texts["params.json"])
	if err != nil {
		return p, err
	}
	known := slices.Concat(harmlessParams, []string{"dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "norm_eps",
		"rope_theta", "use_scaled_rope", "rope_scaling_factor", "sliding_window", "max_seq_len", "max_position_embeddings",
		"moe", "quantization", "use_biases"})
	for key, v := range p.values {
		if v != nil && v != false && !slices.Contains(known, key) {
			p.faultf("has %.40q, whose meaning is not known here: get the folder with config.json", key)
		}
	}
	if biases, _ := p.truth("use_biases"); biases {
		p.faultf("use_biases is true: get the folder with config.json")
	}
	c := map[string]any{"num_hidden_layers": p.need("n_layers"), "hidden_size": p.need("dim"),
		"num_attention_heads": p.need("n_heads"), "num_key_value_heads": p.intOr(p.int("n_heads"), "n_kv_heads"),
		"rms_norm_eps": p.floatOr(1e-5, "norm_eps"), "rope_theta": p.floatOr(1e4, "rope_theta"),
		"max_position_embeddings": originalContext(p)}
	for key, to := range map[string]string{"tok_embeddings.weight": "vocab_size", "layers.0.feed_forward.w1.weight": "intermediate_size",
		"layers.0.feed_forward.experts.0.w1.weight":     "intermediate_size",
		"layers.0.block_sparse_moe.experts.0.w1.weight": "intermediate_size"} {
		i := slices.IndexFunc(f.Tensors, func(t element.Tensor) bool { return t.Name == key })
		if i >= 0 && len(f.Tensors[i].Shape) == 2 {
			c[to] = f.Tensors[i].Shape[0]
		}
	}
	if _, known := c["intermediate_size"]; !known && p.has("hidden_dim") {
		c["intermediate_size"] = p.int("hidden_dim")
	}
	if p.has("head_dim") {
		c["head_dim"] = p.int("head_dim")
	}
	if moe := p.object("moe"); len(moe.values) > 0 {
		c["num_local_experts"], c["num_experts_per_tok"] = moe.need("num_experts"), moe.need("num_experts_per_tok")
	}
	if scaled, _ := p.truth("use_scaled_rope"); scaled {
		c["rope_scaling"] = originalScaling(p)
	}
	if q := p.object("quantization"); len(q.values) > 0 {
		switch kind := q.string("qformat_weight"); kind {
		case "fp8_e4m3":
			c["quantization_config"] = map[string]any{"quant_method": "fp8"}
		case "bcml1": // as storage/cgml says it
			c["quantization_config"] = map[string]any{"quant_method": kind, "shapes": q.values["shapes"]}
		default:
			p.faultf("quantization: qformat_weight is %.40q, want fp8_e4m3", kind)
		}
	}
	if pieces := f.Texts["tokenizer.model"]; pieces != nil && f.Texts["tokenizer.json"] == nil && !isRanks(pieces) {
		c["bos_token_id"], c["eos_token_id"] = 1, 2
	}
	if err := p.err(); err != nil {
		return p, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return p, fmt.Errorf("params.json: %w", err)
	}
	return parseObject("params.json", text)
}

// originalContext is how many positions a model was trained for. Meta's files do not say; what else they say tells
// Llama 3.1, Llama 3, Code Llama and Llama 2 apart.
func originalContext(p object) int {
	theta := p.floatOr(1e4, "rope_theta")
	switch scaled, _ := p.truth("use_scaled_rope"); {
	case p.hasAny("max_position_embeddings", "max_seq_len"):
		return p.need("max_position_embeddings", "max_seq_len")
	case p.hasAny("sliding_window", "head_dim"): // Mistral's, which say no more
		return 1 << 15
	case scaled:
		return 1 << 17
	case theta == 5e5:
		return 1 << 13
	case theta == 1e6:
		return 1 << 14
	case p.floatOr(1e-5, "norm_eps") > 5e-6:
		return 1 << 12
	}
	return 1 << 11
}

// originalScaling is how Llama 3.1 and 3.2 turn positions into angles. Of these 3.2 stretches further, and is told by
// its widths.
func originalScaling(p object) map[string]any {
	factor := 8.0
	if width := p.int("dim"); width == 2048 || width == 3072 {
		factor = 32
	}
	return map[string]any{"rope_type": "llama3", "factor": p.floatOr(factor, "rope_scaling_factor"), "low_freq_factor": 1.0,
		"high_freq_factor": 4.0, "original_max_position_embeddings": 1 << 13}
}

// joinShards puts tensors together of which several files have parts: norms are in all of them, matrices are divided by
// rows, or by columns where they follow one that is divided by rows. Embeddings are divided by either.
func joinShards(f *Folder) (*Folder, map[string]*packed.Tensor, error) {
	parts, order := map[string][]element.Tensor{}, []string(nil)
	for _, t := range f.Tensors {
		_, name := shardOf(t.Name)
		if parts[name] == nil {
			order = append(order, name)
		}
		parts[name] = append(parts[name], t)
	}
	shards := len(parts["tok_embeddings.weight"])
	p, err := parseObject("params.json", f.Texts["params.json"])
	if err != nil {
		return nil, nil, err
	}
	folder, made := *f, map[string]*packed.Tensor{}
	folder.Tensors = nil
	for _, name := range order {
		list := parts[name]
		if len(list) == 1 && list[0].Name == name {
			folder.Tensors = append(folder.Tensors, list[0])
			continue
		}
		if len(list) != shards && name != "rope.freqs" {
			return nil, nil, fmt.Errorf("tensor %.120q: is in %d of %d files: is the folder complete?", name, len(list), shards)
		}
		dimension := 0
		switch key, _, _ := keyOf(name, nil); key {
		case "tok_embeddings":
			if s := list[0].Shape; len(s) == 2 && s[1] != p.int("dim") {
				dimension = 1
			}
		case "layers.*.attention.wo", "layers.*.feed_forward.w2":
			dimension = 1
		}
		if len(list[0].Shape) < 2 {
			list = list[:1]
		}
		t, err := packed.Join(name, dimension, list)
		if err != nil {
			return nil, nil, err
		}
		folder.Tensors = append(folder.Tensors, t.Tensor)
		made[name] = t
	}
	return &folder, made, nil
}
