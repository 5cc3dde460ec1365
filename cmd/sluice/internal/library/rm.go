package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/storage/store"
)

type Rm struct {
	Names []string `arg:"" name:"name" placeholder:"NAME" help:"Models in the store, or pulls that were not finished."`
}

func (Rm) Examples() [2]string {
	return [2]string{`sluice rm OWNER/NAME-GGUF:Q8_0`, `sluice rm small-1 small-2`}
}

// Help is what the flags do not say.
func (Rm) Help() string {
	return "Files that other models have too stay. A server that has a model open goes on with it."
}

func (c *Rm) Run(e *env.Env) error {
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return err
	}
	for _, text := range c.Names {
		name, err := parseModelName(text)
		if err != nil {
			return err
		}
		freed, err := s.Remove(context.Background(), name)
		if absent := (*store.Absent)(nil); errors.As(err, &absent) {
			return fmt.Errorf("%s is not in the store (%s): sluice list shows what is", absent.Name, absent.Store)
		}
		if err != nil {
			return err
		}
		what := env.BinarySize(freed) + " freed"
		if freed == 0 {
			what = "others have its files, which stay"
		}
		if _, err := fmt.Fprintf(e.Stdout, "%s is gone: %s\n", name, what); err != nil {
			return err
		}
	}
	return nil
}
