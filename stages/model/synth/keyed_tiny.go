package synth

import (
	"slices"
	"strings"
)

// least are the largest values that tiny models have of what makes a model large.
var least = []struct {
	name string
	most int
}{
	{experts, 8}, {expertsUsed, 2}, {expertFFN, tinyExpert}, {sharedFFN, 64}, {denseFirst, 1}, {window, 16},
	{"expert_group_count", 2}, {"expert_group_used_count", 1}, {"expert_chunk_feed_forward_length", 64},
	{"expert_latent_length", 64}, {"moe_latent_size", 64}, {"attention.q_lora_rank", 64}, {kvRank, tinyRank},
	{kvRank + near, tinyRank}, {"attention.output_group_count", 2}, {"attention.output_lora_rank", 32},
	{"attention.decay_lora_rank", 32}, {"attention.iclr_lora_rank", 32},
	{"attention.value_residual_mix_lora_rank", 32}, {"attention.gate_lora_rank", 32},
	{"attention.indexer.head_count", 2}, {"ssm.inner_size", 128}, {"ssm.state_size", 32}, {"ssm.time_step_rank", 4},
	{"ssm.group_count", 2}, {"kda.head_dim", 32}, {"hyper_connection.low_rank", 16},
	{"embedding_length_per_layer_input", 16}, {"time_mix_extra_dim", 32}, {"time_decay_extra_dim", 32},
	{"dense_2_feat_in", tinyWidth}, {"dense_2_feat_out", 256}, {"dense_3_feat_in", 256},
	{"dense_3_feat_out", tinyWidth}, {"rope.scaling.original_context_length", 4096},
	{"attention.temperature_length", 1024}, {hashed, 1}, {"experts_per_group", 2}, {sharing, tinyShared}, {perStack, tinyStack},
}

// What tiny models have, and keys whose values follow from others.
const (
	tinyWidth  = 128
	tinyHead   = 32
	tinyTurn   = 16 // of latent attention
	tinyRank   = 64
	tinyFFN    = 256
	tinyExpert = 64
	tinyHeads  = 2 // of keys, and of queries for each of them
	tinyShared = 5 // layers that share what they attend to
	tinyStack  = 2 // layers that are computed several times

	kvRank   = "attention.kv_lora_rank"
	sections = "rope.dimension_sections"
	interval = "full_attention_interval"
)

// tiny makes a shape small: fewer layers, of every kind that there was, smaller ones, and less of all that least names.
func (k *keyed) tiny(c *Config) *keyed {
	small := *k
	small.keys = slices.Clone(k.keys)
	c.Layers = min(c.Layers, k.layersOfAllKinds())
	before := c.headWidth()
	c.KVHeads, c.Heads = fewerHeads(c.KVHeads, c.Heads)
	c.Width, c.FFN, c.Context = tinyWidth, min(c.FFN, tinyFFN), min(c.Context, 4096)
	if k.says(experts) && !k.says(expertFFN) {
		c.FFN = min(c.FFN, tinyExpert)
	}
	head := tinyHead
	if !k.says(headWidth) {
		head = tinyWidth / max(c.Heads, 1)
	}
	for i := range small.keys {
		x := &small.keys[i]
		switch list := x.value.(type) {
		case int:
			x.value = k.smaller(x.name, list, before, head)
		case []int32:
			x.value = k.smallerList(x.name, list, before, head)
		case marks:
			list.number = int32(k.smaller(x.name, int(list.number), before, head))
			list.other = int32(k.smaller(x.name, int(list.other), before, head))
			x.value = list
		}
	}
	return &small
}

// says is whether the file has a key.
func (k *keyed) says(name string) bool {
	return slices.ContainsFunc(k.keys, func(x key) bool { return x.name == name })
}

// count is the value of a key that is a whole number.
func (k *keyed) count(name string) int {
	i := slices.IndexFunc(k.keys, func(x key) bool { return x.name == name })
	n, _ := k.keys[i].value.(int)
	return n
}

// headWidth is the number of features of a head.
func (c *Config) headWidth() int {
	for _, x := range c.keys {
		if n, ok := x.value.(int); ok && x.name == headWidth {
			return n
		}
	}
	return c.Width / max(c.Heads, 1)
}

func fewerHeads(keys, queries int) (int, int) {
	if keys == 0 {
		return 0, min(queries, 2*tinyHeads)
	}
	fewer := min(keys, tinyHeads)
	return fewer, fewer * min(max(queries/keys, 1), tinyHeads)
}

// smaller is a number for a tiny model, whose heads had so many features and now have others.
func (k *keyed) smaller(name string, n, before, head int) int {
	latent, own := k.says(kvRank), strings.HasSuffix(name, near)
	switch name = strings.TrimSuffix(name, near); {
	case name == headWidth && latent && k.says(headWidth+"_mla"):
		return tinyRank + tinyTurn
	case name == valueWidth && latent && k.says(headWidth+"_mla"):
		return tinyRank
	case name == headWidth || name == headWidth+"_mla":
		if latent {
			return tinyHead + tinyTurn
		}
		return min(n, tinyHead)
	case name == valueWidth || name == valueWidth+"_mla":
		return min(n, tinyHead)
	case name == turned && latent:
		return min(n, tinyTurn)
	case name == turned && n > 0:
		return max(n*head/before&^1, 2)
	case name == "attention.head_count_kv":
		return min(n, tinyHeads)
	case name == "attention.head_count":
		return min(n, 2*tinyHeads)
	case name == "feed_forward_length":
		return min(n, tinyFFN)
	}
	if own {
		name += near
	}
	return min(n, mostOf(name, n))
}

// mostOf is the most that a tiny model has of a key; n, if it may have as many as others.
func mostOf(name string, n int) int {
	for _, x := range least {
		if x.name == name {
			return x.most
		}
	}
	return n
}

// smallerList is smaller for each layer.
func (k *keyed) smallerList(name string, list []int32, before, head int) []int32 {
	list = slices.Clone(list)
	for l, n := range list {
		if name == sections {
			list[l] = n * int32(head) / int32(before)
			continue
		}
		list[l] = int32(k.smaller(name, int(n), before, head))
	}
	return list
}

// layersOfAllKinds is the number of layers by which there was one of each kind.
func (k *keyed) layersOfAllKinds() int {
	n := 4
	switch { // layers that share what they attend to need others of each kind before them; all of a stack are computed
	case k.says(sharing):
		n = 2 * tinyShared
	case k.says(perStack):
		n = tinyStack * k.timesStacked()
	}
	for _, x := range k.keys {
		switch v := x.value.(type) {
		case int:
			if x.name == interval || x.name == windows {
				n = max(n, v)
			}
		case flags:
			n = max(n, kinds([]byte(v)))
		case marks:
			n = max(n, kinds([]byte(v.layers)))
		case []int32: // of heads or features: a layer has some, or none
			zero := make([]bool, len(v))
			for l := range v {
				zero[l] = v[l] == 0
			}
			n = max(n, kinds(zero))
		}
	}
	return n
}

// kinds is the length of the part of a list that has all its values.
func kinds[T comparable](list []T) int {
	seen := map[T]bool{}
	n := 0
	for l, x := range list {
		if !seen[x] {
			seen[x], n = true, l+1
		}
	}
	return n
}
