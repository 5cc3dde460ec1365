package watch

import (
	"context"
	"fmt"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

type Health struct{ remoteFlags }

func (Health) Examples() [2]string {
	return [2]string{`sluice health`, `sluice health --addr 127.0.0.1:8081 || systemctl restart sluice`}
}

// Help is what the flags do not say.
func (Health) Help() string {
	return "It ends with 0 if the server can answer, else with 1 and the reason: for health checks of containers, where " +
		"there is no other program that could ask."
}

func (c *Health) Run(e *env.Env) error {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	answer, err := c.get(ctx, e, "/health")
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = fmt.Fprintln(e.Stdout, "ok")
	return err
}
