package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// checked is what --check prints with --json. Its names are part of the interface.
type checked struct {
	Requests int         `json:"requests"` // answered again
	Tokens   int         `json:"tokens"`   // of these answers, that are the same
	LeftOut  int         `json:"left_out"` // requests without answers, or that the trace does not describe fully
	First    *difference `json:"first_difference"`
}

// difference is the first token that differs.
type difference struct {
	Request  int       `json:"request"` // counted from 0, as they arrived
	ID       string    `json:"id,omitempty"`
	At       time.Time `json:"arrived,omitzero"`
	Token    int       `json:"token"` // of its answer, from 0
	Recorded int32     `json:"recorded"`
	Computed int32     `json:"computed"`     // -1: none, the answer ends
	Other    []string  `json:"other_traits"` // what is not as it was: device, program, weights
}

// checkedTogether is how many requests are answered at once. By the law RowAlone it does not matter which were together
// when they were recorded.
const checkedTogether = 8

// check answers the requests of a trace again, and compares.
func (c *Replay) check(e *env.Env) error {
	h, err := c.read(e, windowOf(c.From, c.To, e.Now()))
	if err != nil {
		return err
	}
	for _, note := range h.noted {
		fmt.Fprintf(e.Stderr, "sluice: %s: what follows there is left out\n", env.Visible(note))
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	c.Identified()
	engine, err := c.Start(ctx, e, nil)
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	all, err := h.of(c.Trace, &engine.Info)
	if err != nil {
		return err
	}
	whole := slices.DeleteFunc(slices.Clone(all), func(p *past) bool { return p.odd != nil || len(p.drawn) == 0 })
	result := checked{Requests: len(whole), LeftOut: len(all) - len(whole)}
	if err := result.compare(ctx, engine, whole); err != nil {
		return err
	}
	if c.JSON {
		if err := env.PrintJSON(e.Stdout, result); err != nil {
			return err
		}
	} else if result.First == nil {
		fmt.Fprintf(e.Stdout, "%s, %s: all the same (%s left out)\n",
			env.Count(result.Requests, "request"), env.Count(result.Tokens, "token"), env.Count(result.LeftOut, "request"))
	}
	if d := result.First; d != nil {
		return fmt.Errorf("%s: %w", c.Trace, d)
	}
	return nil
}

// Error implements error.
func (d *difference) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "request %d", d.Request)
	if d.ID != "" {
		fmt.Fprintf(&b, " (%s)", env.Printable(d.ID))
	}
	fmt.Fprintf(&b, ", token %d of its answer: %d was recorded, %d is computed here", d.Token, d.Recorded, d.Computed)
	if len(d.Other) > 0 {
		fmt.Fprintf(&b, "; what is not as it was: %s", strings.Join(d.Other, ", "))
	}
	return b.String()
}

// othersOf names what of an engine is not as it was when a request was recorded.
func othersOf(p *past, engine *actors.Engine) []string {
	names := []string{}
	here := engine.Traits()
	for _, t := range p.model.Traits {
		if !slices.Contains(here, t) {
			names = append(names, t.Name)
		}
	}
	return names
}

// compare answers all requests, some at once, and keeps the first difference in the order of requests.
func (r *checked) compare(ctx context.Context, engine *actors.Engine, all []*past) error {
	var mu sync.Mutex
	var failed error
	places := make(chan struct{}, checkedTogether)
	var wait sync.WaitGroup
	for _, a := range all {
		places <- struct{}{}
		wait.Go(func() {
			same, computed, err := a.answer(ctx, engine)
			mu.Lock()
			defer mu.Unlock()
			r.Tokens += same
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("request %d: %w", a.number, err))
			} else if same < len(a.drawn) && (r.First == nil || a.number < r.First.Request) {
				r.First = &difference{Request: a.number, ID: a.recorded.ID, At: a.at, Token: a.recorded.Drawn + same,
					Recorded: a.drawn[same], Computed: computed, Other: othersOf(a, engine)}
			}
			<-places
		})
	}
	wait.Wait()
	return failed
}

// answer answers one request. same is the number of equal tokens, computed the token that came instead of the next.
func (a *past) answer(ctx context.Context, engine *actors.Engine) (same int, computed int32, err error) {
	r := a.again
	r.MaxTokens += len(a.drawn)
	stream, err := engine.Generate(r)
	if err != nil {
		return 0, 0, err
	}
	defer stream.Close()
	var ev actors.Event
	for {
		switch err := stream.Next(ctx, &ev); {
		case errors.Is(err, io.EOF):
			return same, -1, nil
		case err != nil:
			return same, 0, err
		case ev.HasToken && ev.Token != a.drawn[same]:
			return same, ev.Token, nil
		case ev.HasToken:
			same++
		}
		if same == len(a.drawn) {
			return same, 0, nil
		}
	}
}
