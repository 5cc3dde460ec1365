package text

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/stages/token"
)

type Tokenize struct {
	models.Flag
	Text         []string `arg:"" optional:"" help:"Text. Without it, or with -: standard input."`
	JSON         bool     `name:"json" help:"Print JSON, as without it."`
	ParseSpecial bool     `help:"Read the texts of control tokens, such as <|im_end|>, as these tokens."`
	AddBOS       bool     `name:"add-bos" help:"Add the tokens at both ends that the model's metadata asks for."`
}

func (Tokenize) Examples() [2]string {
	return [2]string{
		`sluice tokenize "Hello, world"`,
		`sluice tokenize -m model.gguf --add-bos --parse-special < prompt.txt`,
	}
}

func (c *Tokenize) Run(e *env.Env) error {
	vocab, err := models.OpenVocab(e, c.Model)
	if err != nil {
		return err
	}
	text := strings.Join(c.Text, " ")
	if len(c.Text) == 0 || text == "-" {
		input, err := e.ReadInput(env.MostText)
		if err != nil {
			return err
		}
		text = string(input)
	}
	ids, err := vocab.Encode([]token.ID{}, text, token.Options{
		AddSpecial:   c.AddBOS,
		ParseSpecial: c.ParseSpecial,
	})
	if err != nil {
		return fmt.Errorf("the text: %w", err)
	}
	return json.NewEncoder(e.Stdout).Encode(ids)
}

type Detokenize struct {
	models.Flag
	IDs []string `arg:"" optional:"" name:"ids" help:"Token ids, split by commas or blanks. Without them, or with -: standard input, JSON or plain."`
}

func (Detokenize) Examples() [2]string {
	return [2]string{
		`printf 'Hello, world' | sluice tokenize | sluice detokenize`,
		`sluice detokenize -m model.gguf 9906,11,1917`,
	}
}

// Run prints exactly the bytes that the ids stand for, control tokens as their text, and no newline.
func (c *Detokenize) Run(e *env.Env) error {
	vocab, err := models.OpenVocab(e, c.Model)
	if err != nil {
		return err
	}
	ids, err := c.ids(e, vocab.Size())
	if err != nil {
		return err
	}
	_, err = e.Stdout.Write(vocab.Decode(nil, ids, true))
	return err
}

func (c *Detokenize) ids(e *env.Env, size int) ([]token.ID, error) {
	if list := strings.Join(c.IDs, " "); list != "" && list != "-" {
		ids, err := models.ParseIDs(strings.Join(c.IDs, " "), size)
		if err != nil {
			return nil, env.Usagef("arguments: %v", err)
		}
		return ids, nil
	}
	text, err := e.ReadInput(env.MostText)
	if err != nil {
		return nil, err
	}
	ids, err := models.ParseIDs(string(text), size)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return ids, nil
}
