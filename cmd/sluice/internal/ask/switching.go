package ask

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
)

// errNoModel is the error for a word that names no model.
var errNoModel = errors.New("no model has this name")

// change has a dialogue go on with the model that a word names, with its own settings where the flags say nothing. One
// model is in memory at a time, since two may not fit: the one before leaves first, and comes back if the other fails.
// Where it does not come back either, the error is errNobody. A word that names no model is errNoModel.
func (c *Chat) change(ctx context.Context, e *env.Env, d *dialogue, word string) error {
	known, named := namedmodel.Known(e.Lookup, word)
	_, missing := os.Stat(word)
	if !known && (!named || missing == nil || strings.HasSuffix(word, ".json")) {
		return errNoModel
	}
	if err := c.readable(ctx, e, word); err != nil {
		return err
	}
	before := c.Model
	compute.Shut(d.engine)
	c.Model = word
	engine, err := c.open(ctx, e, d)
	if err == nil {
		d.engine = engine
		c.remarks(e, engine)
		return nil
	}
	c.Model = before
	engine, again := c.open(context.WithoutCancel(ctx), e, d)
	if again != nil {
		return fmt.Errorf("%w: %w, and the model before does not come back: %w", errNobody, err, again)
	}
	d.engine = engine
	return fmt.Errorf("%w\n%s goes on", err, env.Printable(engine.Info.Name))
}

// errNobody is the error of a change after which no model is loaded.
var errNobody = errors.New("no model is loaded any more")

// readable pulls a model, if --pull allows it, and reads its header: what is no model costs nobody the one they have.
func (c *Chat) readable(ctx context.Context, e *env.Env, word string) error {
	ctx, cancel := e.Interruptible(ctx)
	defer cancel()
	if err := c.Fetch(ctx, e, word); err != nil {
		return err
	}
	file, err := c.OpenWeights(e, word)
	if err != nil {
		return err
	}
	return file.Close()
}

// open loads the model that -m names, for a dialogue, and takes over its settings.
func (c *Chat) open(ctx context.Context, e *env.Env, d *dialogue) (*actors.Engine, error) {
	engine, err := c.load(ctx, e)
	if err != nil {
		return nil, err
	}
	params, err := c.Params(engine)
	if err != nil {
		compute.Shut(engine)
		return nil, err
	}
	d.sampling, d.sees, d.tally.last = params, engine.Habits().Sees, actors.Usage{}
	return engine, nil
}
