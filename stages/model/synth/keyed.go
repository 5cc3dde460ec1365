package synth

import (
	"strconv"
	"strings"
)

// keyed is a known model by the keys of its file: of families that need more than a Config says.
type keyed struct {
	name, arch string
	sizes      sizes
	has        []string // ends of the optional tensors that a file has; "bias": all biases of layers
	keys       []key
}

// sizes are what all files say.
type sizes struct {
	layers, width, ffn, heads, kvHeads, vocab, context int32 // heads are 0 where no layer has any
}

// key is a key without its architecture. Whole numbers become uint32 and others float32, as in files; lists and marks
// are as long as there are layers.
type key struct {
	name  string
	value any
}

// marks is a number for the layers that a text has a sign for, and another for the others. The text is repeated.
type marks struct {
	layers string
	sign   byte
	number int32
	other  int32
}

// flags says for the layers that it has an L for that they are local, or that something else holds. It is repeated.
type flags string

// Keys that most rows have.
const (
	rms    = "attention.layer_norm_rms_epsilon"
	norm   = "attention.layer_norm_epsilon"
	turned = "rope.dimension_count"
	base   = "rope.freq_base"

	headWidth  = "attention.key_length"
	valueWidth = "attention.value_length"
	window     = "attention.sliding_window"
	windows    = "attention.sliding_window_pattern"

	experts     = "expert_count"
	expertsUsed = "expert_used_count"
	expertFFN   = "expert_feed_forward_length"
	sharedFFN   = "expert_shared_feed_forward_length"
	sharedCount = "expert_shared_count"
	gating      = "expert_gating_func" // 1: softmax; 2: sigmoid
	weightsNorm = "expert_weights_norm"
	weightScale = "expert_weights_scale"
	denseFirst  = "leading_dense_block_count"
)

// config is the shape as a Config, whose sizes can be changed.
func (k *keyed) config() Config {
	z := &k.sizes
	return Config{Layers: int(z.layers), Width: int(z.width), FFN: int(z.ffn), Heads: int(z.heads),
		KVHeads: int(z.kvHeads), Vocab: int(z.vocab), Context: int(z.context), keyed: k}
}

// describe writes the keys that a file of such a model has.
func (k *keyed) describe(w writer, c *Config) {
	layers := c.Layers
	if times := k.timesStacked(); times > 0 {
		layers = max(layers/times, 1) * times
	}
	w.count("block_count", layers)
	w.count("context_length", c.Context)
	w.count("embedding_length", c.Width)
	w.count("feed_forward_length", c.FFN)
	w.count("attention.head_count", c.Heads)
	w.count("attention.head_count_kv", c.KVHeads)
	w.count("vocab_size", c.Vocab)
	for _, key := range k.keys {
		name := w.prefix + key.name
		if strings.HasPrefix(key.name, "xielu.") || strings.HasPrefix(key.name, "tokenizer.") {
			name = key.name
		}
		w.m.Set(name, k.fitting(key, layers))
	}
}

// fitting is the value that a key has in a file of so many layers.
func (k *keyed) fitting(x key, layers int) any {
	n, _ := x.value.(int)
	switch x.name {
	case sections: // of a head's pairs
		return x.value
	case perStack:
		n = layers / k.timesStacked()
	case sharing: // they need one of each kind before them
		n = min(n, max(layers-tinyShared, 0))
	case hashed:
		n = min(n, layers)
	default:
		return written(x.value, layers)
	}
	return uint32(n)
}

// timesStacked is how often the layers of a stack are computed; 0: there are no stacks.
func (k *keyed) timesStacked() int {
	if !k.says(perStack) {
		return 0
	}
	return (k.count(lowCycles) + 1) * k.count("hrm.h_cycles")
}

// written is a value as a file has it, with so many layers.
func written(value any, layers int) any {
	switch x := value.(type) {
	case int:
		return uint32(x)
	case float64:
		return float32(x)
	case []int32:
		return repeated(x, layers)
	case []float32:
		return repeated(x, layers)
	case flags:
		list := make([]bool, layers)
		for l := range list {
			list[l] = x[l%len(x)] == 'L'
		}
		return list
	case marks:
		list := make([]int32, layers)
		for l := range list {
			if list[l] = x.other; x.layers[l%len(x.layers)] == x.sign {
				list[l] = x.number
			}
		}
		return list
	}
	return value // a flag or a text
}

// repeated is a list as long as there are layers.
func repeated[T any](list []T, layers int) []T {
	out := make([]T, layers)
	for l := range out {
		out[l] = list[l%len(list)]
	}
	return out
}

// holds says whether a file has an optional tensor.
func (k *keyed) holds(name string) bool {
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		number, own, _ := strings.Cut(rest, ".")
		if layer, err := strconv.Atoi(number); err == nil && k.lacks(layer, own) {
			return false
		}
	}
	for _, end := range k.has {
		if name == end || strings.HasSuffix(name, "."+end) && name != "output.bias" && name != "token_embd.bias" {
			return true
		}
	}
	return false
}

// lacks says whether a layer lacks an optional tensor that others have.
func (k *keyed) lacks(layer int, name string) bool {
	switch k.arch {
	case "gemma4": // there, keys are values
		return layer%6 == 5 && name == "attn_v.weight"
	case "mimo2":
		full := layer == 0 || layer%6 == 5
		return layer == 0 && name == "ffn_gate_inp.weight" || full && name == "attn_sinks.weight"
	case "jamba":
		return layer%2 == 0 && name == "ffn_gate_inp.weight"
	case "modern-bert":
		return layer == 0 && name == "attn_norm.weight"
	case "step35":
		return layer < 3 && name == "ffn_gate_inp.weight"
	}
	return false
}

// keyedShapes are the shapes of such models.
func keyedShapes() (out []Shape) {
	for _, table := range [][]keyed{denseModels, laterModels, mixtureModels, latentModels, recurrentModels,
		encoderModels} {
		for i := range table {
			out = append(out, Shape{table[i].name, table[i].config()})
		}
	}
	return out
}
