package library

import (
	"context"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
)

type Cp struct {
	From string `arg:"" placeholder:"NAME" help:"Model in the store."`
	To   string `arg:"" placeholder:"NAME" help:"Another name for it, such as mine or mine:v2."`
}

func (Cp) Examples() [2]string {
	return [2]string{`sluice cp OWNER/NAME-GGUF:Q4_K_M small`, `sluice cp small small:old`}
}

// Help is what the flags do not say.
func (Cp) Help() string {
	return "Both names have the same files, which are there once, until both are removed."
}

func (c *Cp) Run(e *env.Env) error {
	from, err := parseModelName(c.From)
	if err != nil {
		return err
	}
	to, err := parseModelName(c.To)
	if err != nil {
		return err
	}
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return err
	}
	return s.Copy(context.Background(), from, to, false)
}
