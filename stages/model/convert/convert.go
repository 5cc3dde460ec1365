// Package convert knows how the folder of a model, as training frameworks save it, becomes a GGUF file: which tensor
// gets which name and order, and which keys say what config.json and the tokenizer's files say.
//
// Plan maps names and shapes and touches no weights; a Tensor then writes itself from the folder's bytes. There is one
// file for each family of models: a table of names, and what its keys are. What comes out is what llama.cpp's
// converter writes, byte for byte, because that is what models in GGUF are; reading and writing files is storage's
// business.
//
// Source of names, orders and keys: convert_hf_to_gguf.py of llama.cpp, August 2026, and Hugging Face transformers.
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/packed"
)

// Folder is what Plan needs of a model's folder.
type Folder struct {
	Name    string            // of the folder
	Texts   map[string][]byte // Files that are there, by name
	Tensors []element.Tensor  // in the order in which they are stored
}

// Files lists the texts that Plan reads, if they are there.
func Files() []string {
	return []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
		"added_tokens.json", "chat_template.jinja", "chat_template.json", "vocab.txt", "merges.txt", "modules.json",
		"1_Pooling/config.json", "preprocessor_config.json", "params.json", "tekken.json", "tokenizer.model.v3"}
}

// Options are what a folder does not say.
type Options struct {
	FileType uint32 // general.file_type, as llama.cpp numbers them
	Name     string // of the model; empty: as the folder
	Pre      string // tokenizer.ggml.pre; empty: found by how tokenizer.json cuts text
}

// Model is the plan of a GGUF file.
type Model struct {
	Meta    *meta.Map
	Tensors []Tensor
}

// converter is the conversion of one folder.
type converter struct {
	folder  *Folder
	options Options
	config  object
	family  *family
	meta    *meta.Map
	out     []*output
	byName  map[string]*output
	now     *source // the tensor whose rule runs
	made    map[string]*packed.Tensor
	next    int // heads that predict tokens further on, as layers behind the others
}

// Plan makes the plan of the GGUF file that a folder becomes.
func Plan(f *Folder, o Options) (*Model, error) {
	c := &converter{folder: f, options: o, meta: new(meta.Map), byName: map[string]*output{}}
	if err := c.begin(); err != nil {
		return nil, err
	}
	config := c.config
	if err := c.unpack(config); err != nil {
		return nil, err
	}
	if err := c.mapTensors(); err != nil {
		return nil, err
	}
	tensors, err := c.finish()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.keys(tensors), config.err()); err != nil {
		return nil, err
	}
	return &Model{Meta: c.meta, Tensors: tensors}, nil
}

// begin reads what the folder says that it is.
func (c *converter) begin() (err error) {
	if isOriginal(c.folder) {
		return c.beginOriginal()
	}
	if c.config, err = modelConfig(c.folder.Texts["config.json"]); err != nil {
		return err
	}
	c.family, err = familyOf(c.config)
	return err
}

// unpack has the folder hold the tensors that the model has, where other tools packed them.
func (c *converter) unpack(config object) error {
	var texts [2][]byte
	for i, keys := range [][]string{{"quantization"}, {"quantization_config", "compression_config"}} {
		for _, key := range keys {
			if o := config.object(key); len(o.values) > 0 && texts[i] == nil {
				text, err := json.Marshal(o.values)
				if err != nil {
					return fmt.Errorf("config.json: %s: %w", key, err)
				}
				texts[i] = text
			}
		}
	}
	contents, err := packed.Unpack(texts[0], texts[1], c.folder.Tensors)
	if err != nil {
		return err
	}
	folder := *c.folder
	folder.Tensors = contents.Tensors
	c.folder = &folder
	if c.made == nil {
		c.made = map[string]*packed.Tensor{}
	}
	maps.Copy(c.made, contents.Made)
	return nil
}

// familyOf finds the family by the class that config.json names.
func familyOf(config object) (*family, error) {
	classes := config.strings("architectures")
	if config.string("model_type") == "ministral3" { // models that see name a class that others have, too
		classes = []string{"Ministral3ForCausalLM"}
	}
	if config.has("draft_vocab_size") { // so do models that guess for others
		classes = []string{eagleClass}
	}
	all := families()
	for _, class := range classes {
		for i := range all {
			if slices.Contains(all[i].classes, class) {
				return &all[i], nil
			}
		}
	}
	var known []string
	for i := range all {
		known = append(known, all[i].classes...)
	}
	slices.Sort(known)
	return nil, fmt.Errorf("config.json: architectures is %q, want one of %s", classes, strings.Join(slices.Compact(known), ", "))
}

// source is a tensor of the folder whose rule runs.
type source struct {
	element.Tensor
	layer  int    // the first number in its name, -1 without
	expert int    // the second, -1 without: parts that are stacked
	to     string // what the rule calls it, with numbers and suffix in place
}

// mapTensors applies the rules to all tensors.
func (c *converter) mapTensors() error {
	rules := c.family.table()
	c.next = c.nextLayers()
	layers := c.layers() + c.next
	var unknown []string
	for _, t := range c.folder.Tensors {
		key, suffix, numbers := keyOf(c.named(t.Name), c.family.prefixes)
		r, ok := rules[key+suffix]
		if ok {
			suffix = ""
		} else {
			r, ok = rules[key]
		}
		if !ok {
			if !ignored(t.Name) {
				unknown = append(unknown, t.Name)
			}
			continue
		}
		s := &source{Tensor: t, layer: -1, expert: -1}
		if len(numbers) > 0 {
			s.layer = numbers[0]
		}
		if len(numbers) > 1 {
			s.expert = numbers[1]
		}
		if r.to == "" && r.how == nil || s.layer >= layers {
			continue // of no use, or of a layer that only predicts further tokens, in a family whose heads are left out
		}
		s.to = strings.Replace(r.to, "*", strconv.Itoa(s.layer), 1) + suffix
		if err := c.apply(r, s); err != nil {
			return fmt.Errorf("tensor %.120q: %w", t.Name, err)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%d tensors have names that models of %s do not have here, the first is %.120q: "+
			"it is another kind of model, or a newer one", len(unknown), c.family.arch, unknown[0])
	}
	return nil
}

const (
	mostLayers = 1 << 12 // more than any model has
	mostDim    = 1 << 16 // of a head
)

// layers is how many layers the model has, heads that predict tokens further on not among them.
func (c *converter) layers() int {
	n := c.config.need("num_hidden_layers", "n_layer", "n_layers", "num_layers")
	if n > mostLayers {
		c.config.faultf("has %d layers, want at most %d", n, mostLayers)
		return 1
	}
	return n
}

// apply runs a rule. What it cannot do with the tensor's shape is an error.
func (c *converter) apply(r rule, s *source) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case fault:
			err = f.err
		default:
			panic(f)
		}
	}()
	c.now = s
	if r.how == nil {
		r.how = keep
	}
	r.how(c, s)
	return nil
}

// keyOf takes a name apart: what is left with * for each number, the suffix (.weight or .bias), and the numbers.
func keyOf(name string, prefixes []string) (key, suffix string, numbers []int) {
	for again := true; again; {
		again = false
		for _, p := range prefixes {
			if rest, ok := strings.CutPrefix(name, p); ok {
				name, again = rest, true
			}
		}
	}
	for _, s := range []string{".weight", ".bias"} {
		if rest, ok := strings.CutSuffix(name, s); ok {
			name, suffix = rest, s
			break
		}
	}
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if n, err := strconv.ParseUint(p, 10, 16); err == nil {
			parts[i], numbers = "*", append(numbers, int(n))
		}
	}
	return strings.Join(parts, "."), suffix, numbers
}

// ignored says of names that no rule knows whether they are of no use to text: buffers, and what sees or hears.
func ignored(name string) bool {
	for _, end := range []string{".rotary_emb.inv_freq", ".attention.masked_bias", ".attention.bias", ".attn.bias",
		".attn.masked_bias", ".position_ids"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	for _, part := range []string{"visual.", "vision", "audio", "multi_modal_projector.", "mtp", "embed_vision"} {
		if strings.HasPrefix(name, part) || strings.Contains(name, "."+part) {
			return true
		}
	}
	return false
}
