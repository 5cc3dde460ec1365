package paint

import (
	"fmt"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// pipeline is how a kind of model makes pictures.
type pipeline struct {
	// guides says that its transformer takes a guidance itself, if any: no second text pushes a picture away.
	guides bool
	// usual is what it is used to.
	usual paint.Usual
	// texts reads prompts by its encoders.
	texts func(p *parts) prompter
	// open opens the transformer of a file, with its config.json; nil: it has the settings that were published.
	open func(r paint.Room, f *gguf.File, config []byte) (paint.Transformer, error)
}

// prompter makes of prompts what a transformer reads. It opens what it needs at the first one.
type prompter interface {
	read(r paint.Room, text string) (*paint.Text, error)
	close() error
}

// pipeline is how the model of the parts makes pictures.
func (p *parts) pipeline() pipeline {
	if p.kind == pixels.ZImageKind {
		return pipeline{
			usual: paint.Usual{Steps: 8},
			texts: func(p *parts) prompter { return &encoder{parts: p} },
			open: func(r paint.Room, f *gguf.File, config []byte) (paint.Transformer, error) {
				s, err := settings(config, "transformer", pixels.ZImageTurbo, pixels.ReadZImageSettings)
				if err != nil {
					return nil, err
				}
				return paint.OpenZImage(r, f, s)
			},
		}
	}
	usual := paint.Usual{Steps: 4}
	if p.guided {
		usual = paint.Usual{Steps: 28, Guidance: 3.5}
	}
	return pipeline{
		guides: true,
		usual:  usual,
		texts:  func(p *parts) prompter { return &fluxTexts{parts: p} },
		open: func(r paint.Room, f *gguf.File, config []byte) (paint.Transformer, error) {
			s, err := settings(config, "transformer", pixels.Flux1, pixels.ReadFluxSettings)
			if err != nil {
				return nil, err
			}
			return paint.OpenFlux(r, f, s)
		},
	}
}

// settings are those of a part's config.json, or, if there is none, those that were published.
func settings[T any](config []byte, part string, published T, read func([]byte) (T, error)) (T, error) {
	if config == nil {
		return published, nil
	}
	s, err := read(config)
	if err != nil {
		err = fmt.Errorf("%s/config.json: %w", part, err)
	}
	return s, err
}
