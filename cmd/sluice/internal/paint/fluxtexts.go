package paint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/internal/backend"
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

// fluxTexts reads prompts for FLUX.1 by both encoders of a folder, one after the other.
type fluxTexts struct{ folder string }

func (x *fluxTexts) read(d backend.Device, text string) (*paint.Text, error) {
	var t paint.Text
	words, err := x.clip(text)
	if err == nil {
		err = x.encoder("text_encoder", "CLIPTextModel", func(f *gguf.File, s pixels.TextSettings) (err error) {
			_, t.Pooled, err = paint.Clip(d, f, s, words)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	words, err = x.t5(text)
	if err == nil {
		err = x.encoder("text_encoder_2", "T5EncoderModel", func(f *gguf.File, s pixels.TextSettings) (err error) {
			t.Rows, err = paint.T5(d, f, s, words)
			return err
		})
	}
	return &t, err
}

// encoder opens an encoder of the folder, of the kind that it has to be.
func (x *fluxTexts) encoder(name, want string, use func(*gguf.File, pixels.TextSettings) error) error {
	text, err := readSmall(filepath.Join(x.folder, name, "config.json"))
	if err != nil {
		return err
	}
	kind, s, err := pixels.ReadTextSettings(text)
	if err == nil && kind != want {
		err = fmt.Errorf("architectures are %.40q, want %s", kind, want)
	}
	if err != nil {
		return fmt.Errorf("%s/config.json: %w", name, err)
	}
	f, err := checkpoint.OpenUnchanged(filepath.Join(x.folder, name))
	if err != nil {
		return err
	}
	return errors.Join(use(f, s), f.Close())
}

// clip is a prompt's tokens for CLIP. Those that fill up what it takes change nothing: each sees those before it alone.
func (x *fluxTexts) clip(text string) ([]int32, error) {
	_, words, err := x.tokens("tokenizer", convert.ClipVocabulary, text)
	if n := len(words); err == nil && n > clipTokens {
		words = append(words[:clipTokens-1], words[n-1])
	}
	return words, err
}

// t5 is a prompt's tokens for T5, filled up.
func (x *fluxTexts) t5(text string) ([]int32, error) {
	most := schnellTokens
	if guided, err := guided(x.folder); err != nil {
		return nil, err
	} else if guided {
		most = devTokens
	}
	v, words, err := x.tokens("tokenizer_2", convert.T5Vocabulary, text)
	if err != nil {
		return nil, err
	}
	var said struct {
		Most float64 `json:"model_max_length"`
	}
	config, err := (&checkpoint.Folder{Path: filepath.Join(x.folder, "tokenizer_2")}).Text("tokenizer_config.json")
	if err == nil && config != nil {
		err = json.Unmarshal(config, &said)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer_2/tokenizer_config.json: %w", err)
	}
	if said.Most >= 1 && said.Most < float64(most) {
		most = int(said.Most)
	}
	if len(words) > most {
		return nil, refusal.TooLong("the prompt has %d tokens, want at most %d", len(words), most)
	}
	fill, ok := v.Lookup("<pad>")
	if !ok {
		return nil, fmt.Errorf("%s: the vocabulary has no <pad>, which fills a prompt up to %d tokens", filepath.Join(x.folder,
			"tokenizer_2"), most)
	}
	return append(words, slices.Repeat([]int32{fill}, most-len(words))...), nil
}

// tokens encodes a prompt with the tokens that begin and end it.
func (x *fluxTexts) tokens(name string, read vocabulary, text string) (*token.Vocab, []int32, error) {
	path := filepath.Join(x.folder, name)
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
	m, err := read(files)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	v, err := token.New(m)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	words, err := v.Encode(nil, text, token.Options{AddSpecial: true})
	if err != nil {
		return nil, nil, fmt.Errorf("the prompt: %w", err)
	}
	return v, words, nil
}

func (x *fluxTexts) close() error { return nil }
