package paint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Files names parts of a model. Those that are left open are looked for.
type Files struct {
	VAE   string `placeholder:"FILE" help:"Autoencoder, such as ae.safetensors. Default: of the folder, or found beside -m by what files hold."`
	ClipL string `placeholder:"FILE" help:"FLUX.1's first encoder of texts, such as clip_l.safetensors. Default: likewise."`
	T5    string `name:"t5xxl" placeholder:"FILE" help:"FLUX.1's second encoder of texts, such as t5xxl_fp16.safetensors or a GGUF. Default: likewise."`
	LLM   string `name:"llm" placeholder:"FILE" help:"Z-Image's encoder of texts: a GGUF of Qwen3-4B. Default: likewise."`
}

// parts are where the parts of a model lie: in a folder as diffusers has it, or in files of their own. A path is of a
// file, whose settings are those that were published, or of a folder with a config.json.
type parts struct {
	at        string      // what the model was called by
	kind      pixels.Kind // of the transformer
	guided    bool        // it is FLUX.1 dev
	paths     map[pixels.Kind]string
	words     map[pixels.Kind]string // folders of the tokenizers of encoders whose files have none
	scheduler string                 // "": as published
}

// findParts finds what a model consists of, without its weights. At the path is a folder, or the transformer's file.
func findParts(path string, named Files) (*parts, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	p := &parts{at: path, paths: map[pixels.Kind]string{}, words: map[pixels.Kind]string{}}
	index := filepath.Join(path, "model_index.json")
	if _, missing := os.Stat(index); info.IsDir() && missing == nil {
		if err := p.published(index); err != nil {
			return nil, err
		}
		for kind := range named.byKind() {
			delete(p.words, kind) // another file may have its own
		}
		return p, p.search(path, named)
	}
	folder := path
	if !info.IsDir() {
		folder = filepath.Dir(path)
		f, err := look(path)
		if err != nil {
			return nil, err
		}
		if f.kind != pixels.ZImageKind && f.kind != pixels.FluxKind {
			return nil, fmt.Errorf("%s: has no transformer of Z-Image or FLUX.1, by the names of its tensors: want one, or a folder", path)
		}
		p.kind, p.paths[f.kind], p.guided = f.kind, path, f.guided
	}
	return p, p.search(folder, named)
}

// byKind is what is named.
func (f Files) byKind() map[pixels.Kind]string {
	all := map[pixels.Kind]string{}
	for kind, path := range map[pixels.Kind]string{pixels.AutoencoderKind: f.VAE, pixels.ClipKind: f.ClipL,
		pixels.T5Kind: f.T5, pixels.Reader: f.LLM} {
		if path != "" {
			all[kind] = path
		}
	}
	return all
}

// published reads what the folder of diffusers is of.
func (p *parts) published(index string) error {
	var said struct {
		Class string `json:"_class_name"`
	}
	text, err := readSmall(index)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return fmt.Errorf("%s: %w", index, err)
	}
	within := func(name string) string { return filepath.Join(p.at, name) }
	switch said.Class {
	case "ZImagePipeline":
		p.kind = pixels.ZImageKind
		p.paths[pixels.Reader], p.words[pixels.Reader] = within("text_encoder"), within("tokenizer")
	case "FluxPipeline":
		p.kind = pixels.FluxKind
		p.paths[pixels.ClipKind], p.words[pixels.ClipKind] = within("text_encoder"), within("tokenizer")
		p.paths[pixels.T5Kind], p.words[pixels.T5Kind] = within("text_encoder_2"), within("tokenizer_2")
		if p.guided, err = guided(within("transformer")); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s: is of %.40q, want ZImagePipeline or FluxPipeline: no other model makes pictures here yet", p.at,
			said.Class)
	}
	p.paths[p.kind], p.paths[pixels.AutoencoderKind] = within("transformer"), within("vae")
	p.scheduler = filepath.Join(within("scheduler"), "scheduler_config.json")
	return nil
}

// guided says whether the FLUX.1 transformer of a folder takes a guidance.
func guided(folder string) (bool, error) {
	var config struct {
		Guided bool `json:"guidance_embeds"`
	}
	text, err := readSmall(filepath.Join(folder, "config.json"))
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return false, fmt.Errorf("transformer/config.json: %w", err)
	}
	return config.Guided, nil
}

// readSmall reads a description.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	defer f.Close()
	text, err := safefile.ReadAll(f, env.MostDescription)
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	return text, nil
}

// open opens a part, with its config.json; nil: it has the settings that were published.
func (p *parts) open(kind pixels.Kind) (f *gguf.File, config []byte, err error) {
	path := p.paths[kind]
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, env.OnFile(path, err)
	}
	if info.IsDir() {
		if config, err = readSmall(filepath.Join(path, "config.json")); err != nil {
			return nil, nil, err
		}
	}
	f, err = checkpoint.OpenUnchanged(path)
	return f, config, err
}

// flow is the schedule of the model's levels of noise.
func (p *parts) flow() (diffuse.Flow, error) {
	const zimageShift = 3
	switch {
	case p.scheduler == "" && p.kind == pixels.ZImageKind:
		return diffuse.Flow{Shift: zimageShift}, nil
	case p.scheduler == "" && p.guided:
		return diffuse.Flow{Shifting: diffuse.Exponential}, nil
	case p.scheduler == "":
		return diffuse.Flow{Shift: 1}, nil
	}
	text, err := readSmall(p.scheduler)
	if err != nil {
		return diffuse.Flow{}, err
	}
	flow, err := diffuse.ReadFlow(text)
	if err != nil {
		return flow, fmt.Errorf("scheduler/scheduler_config.json: %w", err)
	}
	return flow, nil
}

// seen is what a file holds.
type seen struct {
	kind   pixels.Kind
	guided bool
	words  bool // it has a vocabulary
}

// look says what a file holds.
func look(path string) (seen, error) {
	f, err := checkpoint.OpenUnchanged(path)
	if err != nil {
		return seen{}, err
	}
	list := listed(f)
	_, err = f.Meta.String("tokenizer.ggml.model")
	s := seen{pixels.KindOf(list), pixels.Guided(list), err == nil}
	return s, f.Close()
}

// listed are a file's tensors.
func listed(f *gguf.File) []ir.Tensor {
	list := make([]ir.Tensor, len(f.Tensors))
	for i, t := range f.Tensors {
		list[i] = ir.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}
	}
	return list
}
