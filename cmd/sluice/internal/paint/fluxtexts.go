package paint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// How many tokens the encoders of FLUX.1 take. CLIP leaves out what is more, since its vector is of the whole alone. T5
// reads all of a prompt, and what is filled up counts: schnell was trained with half as many as dev.
const (
	clipTokens    = 77
	schnellTokens = 256
	devTokens     = 512
)

// vocabulary makes the keys of a vocabulary of a tokenizer's files.
type vocabulary func(files map[string][]byte) (*meta.Map, error)

// fluxTexts reads prompts for FLUX.1 by both encoders, one after the other.
type fluxTexts struct{ parts *parts }

func (x *fluxTexts) read(r paint.Room, text string) (*paint.Text, error) {
	var t paint.Text
	err := x.encoder(pixels.ClipKind, func(f *gguf.File, s pixels.TextSettings) error {
		words, err := x.clip(f, text)
		if err == nil {
			_, t.Pooled, err = paint.Clip(r, f, s, words)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = x.encoder(pixels.T5Kind, func(f *gguf.File, s pixels.TextSettings) error {
		words, err := x.t5(f, text)
		if err == nil {
			t.Rows, err = paint.T5(r, f, s, words)
		}
		if err == nil {
			t.Width = len(t.Rows) / len(words)
		}
		return err
	})
	return &t, err
}

// encoder opens an encoder, which has to be of the kind that is wanted.
func (x *fluxTexts) encoder(kind pixels.Kind, use func(*gguf.File, pixels.TextSettings) error) error {
	f, config, err := x.parts.open(kind)
	if err != nil {
		return err
	}
	name, want, published := "text_encoder", "CLIPTextModel", pixels.ClipSettings
	if kind == pixels.T5Kind {
		name, want, published = "text_encoder_2", "T5EncoderModel", pixels.T5Settings
	}
	s := published(listed(f))
	if config != nil {
		var is string
		if is, s, err = pixels.ReadTextSettings(config); err == nil && is != want {
			err = fmt.Errorf("architectures are %.40q, want %s", is, want)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s/config.json: %w", name, err), f.Close())
		}
	}
	return errors.Join(use(f, s), f.Close())
}

// clip is a prompt's tokens for CLIP. Those that fill up what it takes change nothing: each sees those before it alone.
func (x *fluxTexts) clip(f *gguf.File, text string) ([]int32, error) {
	_, words, err := x.tokens(f, pixels.ClipKind, convert.ClipVocabulary, text)
	if n := len(words); err == nil && n > clipTokens {
		words = append(words[:clipTokens-1], words[n-1])
	}
	return words, err
}

// t5 is a prompt's tokens for T5, filled up.
func (x *fluxTexts) t5(f *gguf.File, text string) ([]int32, error) {
	most := schnellTokens
	if x.parts.guided {
		most = devTokens
	}
	v, words, err := x.tokens(f, pixels.T5Kind, convert.T5Vocabulary, text)
	if err != nil {
		return nil, err
	}
	folder := x.parts.words[pixels.T5Kind]
	if said, err := longest(folder); err != nil {
		return nil, err
	} else if said > 0 {
		most = min(most, said)
	}
	if len(words) > most {
		return nil, refusal.TooLong("the prompt has %d tokens, want at most %d", len(words), most)
	}
	fill, ok := v.Lookup("<pad>")
	if !ok {
		return nil, fmt.Errorf("%s: the vocabulary has no <pad>, which fills a prompt up to %d tokens",
			cmp.Or(folder, f.Name), most)
	}
	return append(words, slices.Repeat([]int32{fill}, most-len(words))...), nil
}

// longest is how many tokens a prompt may have, as a tokenizer's folder says; 0: it does not.
func longest(folder string) (int, error) {
	if folder == "" {
		return 0, nil
	}
	var said struct {
		Most float64 `json:"model_max_length"`
	}
	const name = "tokenizer_config.json"
	config, err := (&checkpoint.Folder{Path: folder}).Text(name)
	if err == nil && config != nil {
		err = json.Unmarshal(config, &said)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
	}
	if said.Most >= 1 && said.Most < devTokens {
		return int(said.Most), nil
	}
	return 0, nil
}

// tokens encodes a prompt with the tokens that begin and end it, by a vocabulary of the encoder's file or of a folder.
func (x *fluxTexts) tokens(f *gguf.File, kind pixels.Kind, read vocabulary, text string) (
	*token.Vocab, []int32, error) {
	keys, from := &f.Meta, f.Name
	if path := x.parts.words[kind]; path != "" {
		folder, files := checkpoint.Folder{Path: path}, map[string][]byte{}
		for _, name := range convert.PromptFiles() {
			data, err := folder.Text(name)
			if err != nil {
				return nil, nil, err
			}
			if data != nil {
				files[name] = data
			}
		}
		var err error
		if keys, err = read(files); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		from = path
	}
	v, err := token.New(keys)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", from, err)
	}
	words, err := v.Encode(nil, text, token.Options{AddSpecial: true})
	if err != nil {
		return nil, nil, fmt.Errorf("the prompt: %w", err)
	}
	return v, words, nil
}

func (x *fluxTexts) close() error { return nil }
