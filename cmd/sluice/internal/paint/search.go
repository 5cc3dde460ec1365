package paint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/model/pixels"
)

// mostFiles bounds the files of a folder that are looked into.
const mostFiles = 256

// need is a part that a transformer needs, and what is said if it is missing.
type need struct {
	kind        pixels.Kind
	name, where string
	flag        string   // that names it
	words       []string // files of its tokenizer, the one that tells it from others first; nil: its own file has one
	wordsFrom   string
	folder      string // of its tokenizer, as diffusers calls it
}

// needed lists what a kind of transformer needs.
func needed(kind pixels.Kind) []need {
	vae := need{kind: pixels.AutoencoderKind, name: "the autoencoder", flag: "--vae",
		where: "ae.safetensors of huggingface.co/black-forest-labs/FLUX.1-schnell"}
	if kind == pixels.ZImageKind {
		return []need{vae, {kind: pixels.Reader, name: "Z-Image's encoder of texts", flag: "--llm",
			where: "a GGUF of huggingface.co/Qwen/Qwen3-4B-GGUF"}}
	}
	return []need{vae,
		{kind: pixels.ClipKind, name: "FLUX.1's first encoder of texts, CLIP-L", flag: "--clip-l",
			where: "clip_l.safetensors of huggingface.co/comfyanonymous/flux_text_encoders",
			words: []string{"vocab.json", "merges.txt"}, folder: "tokenizer",
			wordsFrom: "huggingface.co/openai/clip-vit-large-patch14"},
		{kind: pixels.T5Kind, name: "FLUX.1's second encoder of texts, T5-XXL", flag: "--t5xxl",
			where: "t5xxl_fp16.safetensors of huggingface.co/comfyanonymous/flux_text_encoders, or a GGUF of " +
				"huggingface.co/city96/t5-v1_1-xxl-encoder-gguf",
			words: []string{"spiece.model"}, folder: "tokenizer_2", wordsFrom: "huggingface.co/google/t5-v1_1-xxl"},
	}
}

// search finds the parts that are not known yet among the files of a folder, and tokenizers of those that have none.
func (p *parts) search(folder string, named Files) error {
	for kind, file := range named.byKind() {
		p.paths[kind] = file
	}
	var found map[string]seen
	var unread []error
	if !p.complete() {
		var err error
		if found, unread, err = lookInto(folder); err != nil {
			return err
		}
	}
	if p.kind == pixels.Other {
		if err := p.transformer(found); err != nil {
			return err
		}
	}
	var faults []error
	for _, n := range needed(p.kind) {
		if p.paths[n.kind] == "" {
			path, err := only(found, n.kind, n.flag)
			if err == nil && path == "" {
				err = fmt.Errorf("%s: %s is missing: put %s there, or name it by %s", folder, n.name, n.where, n.flag)
			}
			if err != nil {
				faults = append(faults, err)
				continue
			}
			p.paths[n.kind] = path
		}
		if err := p.tokenizer(n, folder); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return errors.Join(append(faults, unread...)...)
	}
	return nil
}

// complete says whether all parts are known.
func (p *parts) complete() bool {
	missing := func(n need) bool { return p.paths[n.kind] == "" }
	return p.kind != pixels.Other && !slices.ContainsFunc(needed(p.kind), missing)
}

// lookInto says what the files of a folder hold, and which cannot be read.
func lookInto(folder string) (found map[string]seen, unread []error, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, env.OnFile(folder, err)
	}
	found = map[string]seen{}
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".gguf", ".safetensors"}, filepath.Ext(e.Name())) {
			continue
		}
		if len(found)+len(unread) == mostFiles {
			return nil, nil, fmt.Errorf("%s: has more than %d files of weights: want a folder of one model", folder, mostFiles)
		}
		path := filepath.Join(folder, e.Name())
		s, err := look(path)
		if err != nil {
			unread = append(unread, fmt.Errorf("not looked into: %w", err))
			continue
		}
		if s.kind == pixels.Reader && !s.words { // weights of language alone, as those of a shard
			continue
		}
		found[path] = s
	}
	return found, unread, nil
}

// transformer finds the transformer, which says what the model is.
func (p *parts) transformer(found map[string]seen) error {
	var all []string
	for path, s := range found {
		if s.kind == pixels.ZImageKind || s.kind == pixels.FluxKind {
			all = append(all, path)
			p.kind, p.paths[s.kind], p.guided = s.kind, path, s.guided
		}
	}
	slices.Sort(all)
	switch len(all) {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("%s: has neither a model_index.json nor a file of a transformer: want the folder of Z-Image or FLUX.1 as "+
			"diffusers has it, or one with z_image_turbo or flux1-schnell (.safetensors or .gguf) and its other parts", p.at)
	}
	return fmt.Errorf("%s: has several transformers, %s: want one, or its file as the model", p.at, strings.Join(all, ", "))
}

// only is the one file of a kind; "": there is none.
func only(found map[string]seen, kind pixels.Kind, flag string) (string, error) {
	var all []string
	for path, s := range found {
		if s.kind == kind {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	switch len(all) {
	case 0:
		return "", nil
	case 1:
		return all[0], nil
	}
	return "", fmt.Errorf("%s: are all of one kind: name one by %s, or leave one there", strings.Join(all, ", "), flag)
}

// tokenizer finds the folder of an encoder's tokenizer, unless its file has one or nothing of it is asked for.
func (p *parts) tokenizer(n need, folder string) error {
	path := p.paths[n.kind]
	if n.words == nil || p.words[n.kind] != "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		s, err := look(path)
		if err != nil {
			return err
		}
		if s.kind != n.kind {
			return fmt.Errorf("%s: is not %s, by the names of its tensors", path, n.name)
		}
		if s.words {
			return nil
		}
	}
	for _, at := range []string{filepath.Dir(path), folder} {
		for _, file := range []string{filepath.Join(n.folder, n.words[0]), filepath.Join(n.folder, "tokenizer.json"), n.words[0]} {
			file = filepath.Join(at, file)
			if _, err := os.Stat(file); err == nil {
				p.words[n.kind] = filepath.Dir(file)
				return nil
			}
		}
	}
	return fmt.Errorf("%s: has no vocabulary: put %s of %s beside it", path, strings.Join(n.words, " and "), n.wordsFrom)
}
