package paint

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// pipeline is how a kind of model makes pictures.
type pipeline struct {
	class string // as model_index.json names it
	// guides says that its transformer takes a guidance itself, if any: no second text pushes a picture away.
	guides bool
	// usual reads from its folder what it is used to.
	usual func(folder string) (paint.Usual, error)
	// texts reads prompts by the encoders of its folder.
	texts func(folder string) prompter
	// open opens the transformer of a file, with its config.json.
	open func(d backend.Device, f *gguf.File, config []byte) (paint.Transformer, error)
}

// prompter makes of prompts what a transformer reads. It opens what it needs at the first one.
type prompter interface {
	read(d backend.Device, text string) (*paint.Text, error)
	close() error
}

// pipelines lists the models that make pictures here.
func pipelines() []pipeline {
	return []pipeline{
		{
			class: "ZImagePipeline",
			usual: func(string) (paint.Usual, error) { return paint.Usual{Steps: 8}, nil },
			texts: func(folder string) prompter { return &encoder{folder: folder} },
			open: func(d backend.Device, f *gguf.File, config []byte) (paint.Transformer, error) {
				s, err := pixels.ReadZImageSettings(config)
				if err != nil {
					return nil, fmt.Errorf("transformer/config.json: %w", err)
				}
				return paint.OpenZImage(d, f, s)
			},
		},
		{
			class:  "FluxPipeline",
			guides: true,
			usual: func(folder string) (paint.Usual, error) {
				guided, err := guided(folder)
				if guided {
					return paint.Usual{Steps: 28, Guidance: 3.5}, err
				}
				return paint.Usual{Steps: 4}, err
			},
			texts: func(folder string) prompter { return &fluxTexts{folder: folder} },
			open: func(d backend.Device, f *gguf.File, config []byte) (paint.Transformer, error) {
				s, err := pixels.ReadFluxSettings(config)
				if err != nil {
					return nil, fmt.Errorf("transformer/config.json: %w", err)
				}
				return paint.OpenFlux(d, f, s)
			},
		},
	}
}

// pipelineOf finds the pipeline of a folder.
func pipelineOf(folder string) (*pipeline, error) {
	var index struct {
		Class string `json:"_class_name"`
	}
	text, err := readSmall(filepath.Join(folder, "model_index.json"))
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil {
		return nil, fmt.Errorf("want the folder of Z-Image or FLUX.1, as diffusers has it: %w", err)
	}
	all := pipelines()
	for i := range all {
		if all[i].class == index.Class {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("%s: is of %.40q, want ZImagePipeline or FluxPipeline: no other model makes pictures here yet", folder,
		index.Class)
}

// guided says whether the FLUX.1 of a folder takes a guidance, as dev does, and schnell does not.
func guided(folder string) (bool, error) {
	var config struct {
		Guided bool `json:"guidance_embeds"`
	}
	text, err := readSmall(filepath.Join(folder, "transformer", "config.json"))
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return false, fmt.Errorf("transformer/config.json: %w", err)
	}
	return config.Guided, nil
}
