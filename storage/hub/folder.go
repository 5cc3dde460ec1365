package hub

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tensors ends the names of files of weights beside which there is a config.json, and folderTag is the tag of such a
// model, all of whose files are one.
const (
	tensors   = ".safetensors"
	folderTag = "safetensors"
)

// companions are the files beside weights that say what they are, and how texts become tokens.
var companions = []string{
	"config.json", "generation_config.json", "model.safetensors.index.json",
	"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja", "chat_template.json",
}

// shardName matches the weights of transformers; the same model may be there a second time, in another's layout.
var shardName = regexp.MustCompile(`^model(-\d{5}-of-\d{5})?$`)

// folderOf are the files of a model as Hugging Face's libraries read it, or nil. Folders in it are left out.
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

// shardsOf finds out whether all files of weights are there that their names tell of.
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
