package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

type Stop struct {
	Name string `arg:"" help:"Name of the model, as clients call it."`
	remoteFlags
}

func (Stop) Examples() [2]string {
	return [2]string{`sluice stop llama3.2`, `sluice stop small --addr 127.0.0.1:8081`}
}

// Help is what the flags do not say.
func (Stop) Help() string {
	return "Answers that are under way are finished first. The model is loaded again for whoever asks for it; Ctrl-C ends " +
		"the server itself."
}

func (c *Stop) Run(e *env.Env) error {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	body, err := json.Marshal(map[string]string{"model": c.Name})
	if err != nil {
		return err
	}
	answer, err := c.ask(ctx, e, http.MethodPost, "/models/unload", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return answer.Close()
}
