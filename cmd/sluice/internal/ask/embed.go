package ask

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/embed"
	"github.com/sluice-ai/sluice/stages/token"
)

type Embed struct {
	compute.EngineFlags
	Texts     []string `arg:"" optional:"" name:"text" help:"Texts, a vector for each."`
	Tokens    string   `placeholder:"IDS" help:"Token ids instead, such as 1,2,3, with nothing put around them."`
	Pooling   string   `enum:"model,mean,cls,last" default:"model" help:"How rows become a vector: model (as its file says), mean, cls or last."`
	Normalize bool     `help:"Give vectors the length 1."`
	JSON      bool     `help:"Print one JSON object."`
}

func (Embed) Examples() [2]string {
	return [2]string{
		`sluice embed -m bert.gguf --json "a text" "another"`,
		`sluice embed -m bert.gguf --pooling cls --normalize --tokens 101,2023,102`,
	}
}

// Embeddings is what --json prints.
type Embeddings struct {
	Embeddings [][]float32 `json:"embeddings"`
	Dimensions int         `json:"dimensions"`
	Tokens     int         `json:"tokens"`
}

func (c *Embed) Run(e *env.Env) error {
	if (c.Tokens == "") == (len(c.Texts) == 0) {
		return env.Usagef("give texts, or --tokens, and not both")
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	engine, err := c.Start(ctx, e, func(*actors.Config) {})
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	texts, err := c.inputs(engine)
	if err != nil {
		return err
	}
	vectors, err := engine.Vectors(ctx, texts, c.kind(engine.Info.Program.Pooling))
	if err != nil {
		return err
	}
	all := Embeddings{Embeddings: vectors}
	for i, v := range vectors {
		if all.Dimensions, all.Tokens = len(v), all.Tokens+len(texts[i]); c.Normalize {
			embed.Normalize(v)
		}
	}
	if c.JSON {
		return json.NewEncoder(e.Stdout).Encode(all)
	}
	for _, v := range all.Embeddings {
		if _, err := fmt.Fprintln(e.Stdout, v); err != nil {
			return err
		}
	}
	return nil
}

// inputs are the token ids of each text.
func (c *Embed) inputs(engine *actors.Engine) ([][]int32, error) {
	if c.Tokens != "" {
		ids, err := models.ParseIDs(c.Tokens, engine.Info.Vocab)
		if err != nil {
			return nil, env.Usagef("--tokens: %v", err)
		}
		return [][]int32{ids}, nil
	}
	all := make([][]int32, len(c.Texts))
	for i, text := range c.Texts {
		ids, err := engine.Vocab().Encode(nil, text, token.Options{AddSpecial: true})
		if err != nil {
			return nil, fmt.Errorf("text %d cannot be put into tokens: %w", i+1, err)
		}
		all[i] = ids
	}
	return all, nil
}

func (c *Embed) kind(model ir.Pooling) ir.Pooling {
	for _, kind := range []ir.Pooling{ir.PoolMean, ir.PoolFirst, ir.PoolLast} {
		if kind.String() == c.Pooling {
			return kind
		}
	}
	return model
}
