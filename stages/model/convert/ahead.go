package convert

import (
	"strconv"
	"strings"
)

// In this file heads that predict the token after the next one (MTP) are found in a folder. A GGUF file has them as
// layers behind the others, each with a few tensors called nextn.

// aheadNames are the rules of a head's own tensors. norm is how the family's norms become ours.
func aheadNames(norm func(*converter, *source)) map[string]rule {
	return map[string]rule{
		"layers.*.eh_proj":          as("blk.*.nextn.eh_proj"),
		"layers.*.embed_tokens":     as("blk.*.nextn.embed_tokens"),
		"layers.*.enorm":            by("blk.*.nextn.enorm", norm),
		"layers.*.hnorm":            by("blk.*.nextn.hnorm", norm),
		"layers.*.shared_head.norm": by("blk.*.nextn.shared_head_norm", norm),
		"layers.*.shared_head.head": as("blk.*.nextn.shared_head_head"),
	}
}

// apartNames are what Qwen calls the parts of its head that GLM and DeepSeek have in the head's layer.
var apartNames = map[string]string{
	"mtp.fc.": "eh_proj.", "mtp.pre_fc_norm_embedding.": "enorm.", "mtp.pre_fc_norm_hidden.": "hnorm.",
	"mtp.norm.": "shared_head.norm.",
}

// named is the name of a tensor of a folder with heads as layers behind the others.
func (c *converter) named(name string) string {
	if !c.family.ahead {
		return name
	}
	at := strings.TrimPrefix(name, "model.")
	if rest, ok := strings.CutPrefix(at, "mtp.layers."); ok {
		number, rest, _ := strings.Cut(rest, ".")
		if n, err := strconv.ParseUint(number, 10, 16); err == nil {
			return "layers." + strconv.Itoa(c.layers()+int(n)) + "." + rest
		}
	}
	for from, to := range apartNames {
		if rest, ok := strings.CutPrefix(at, from); ok {
			return "layers." + strconv.Itoa(c.layers()) + "." + to + rest
		}
	}
	return name
}

// nextLayers counts the folder's heads: layers behind the others, one after the other, that have what makes one.
func (c *converter) nextLayers() int {
	if !c.family.ahead {
		return 0
	}
	layers, found := c.layers(), map[int]bool{}
	for i := range c.folder.Tensors {
		if key, _, numbers := keyOf(c.named(c.folder.Tensors[i].Name), c.family.prefixes); key == "layers.*.eh_proj" {
			found[numbers[0]] = true
		}
	}
	n := 0
	for found[layers+n] {
		n++
	}
	return n
}
