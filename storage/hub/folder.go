package hub

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tensors is the extension of files of weights. folderTag is the tag of a model that is a folder of such files; a
// repository holds at most one.
const (
	tensors   = ".safetensors"
	folderTag = "safetensors"
)

// companions are the files beside weights: configuration and tokenizer.
var companions = []string{
	"config.json", "generation_config.json", "model.safetensors.index.json",
	"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja", "chat_template.json",
}

// shardName matches the names, without extension, under which the transformers library saves weights. Where there are
// such files, other .safetensors files are left out: they may hold the same model in another library's layout.
var shardName = regexp.MustCompile(`^model(-\d{5}-of-\d{5})?$`)

// folderOf returns the files of a model as Hugging Face's libraries read it, without subfolders; nil if there is
// none.
func folderOf(files []published) []published {
	var weights, others, beside []published
	for _, f := range files {
		stem, isWeights := strings.CutSuffix(f.path, tensors)
		switch {
		case strings.Contains(f.path, "/"):
		case isWeights && shardName.MatchString(stem):
			weights = append(weights, f)
		case isWeights:
			others = append(others, f)
		case slices.Contains(companions, path.Base(f.path)):
			beside = append(beside, f)
		}
	}
	if len(weights) == 0 {
		weights = others
	}
	if len(weights) == 0 || !slices.ContainsFunc(beside, func(f published) bool { return f.path == "config.json" }) {
		return nil
	}
	for _, some := range [][]published{weights, beside} { // in whatever order the hub lists them
		slices.SortFunc(some, func(a, b published) int { return strings.Compare(a.path, b.path) })
	}
	return append(weights, beside...)
}

// shardsOf fails if a shard is missing: the names of the others say how many there are.
func shardsOf(folder []published) error {
	seen, of := map[string]bool{}, 0
	for _, f := range folder {
		if m := partName.FindStringSubmatch(strings.TrimSuffix(f.path, tensors)); m != nil {
			seen[m[2]] = true
			n, _ := strconv.Atoi(m[3])
			of = max(of, n)
		}
	}
	if len(seen) != of {
		return fmt.Errorf("%d of %d files of weights are on the hub", len(seen), of)
	}
	return nil
}
