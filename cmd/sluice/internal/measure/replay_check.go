package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/sample"
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
	Request  int   `json:"request"` // counted from 0, as they arrived
	Token    int   `json:"token"`   // of its answer, from 0
	Recorded int32 `json:"recorded"`
	Computed int32 `json:"computed"`
}

// asked is a request in a trace.
type asked struct {
	number int
	prompt []int32
	params sample.Params
	drawn  []int32
}

// checkedTogether is how many requests are answered at once. By the law RowAlone it does not matter which were together
// when they were recorded.
const checkedTogether = 8

// check answers the requests of a trace again, and compares.
func (c *Replay) check(e *env.Env) error {
	model, all, leftOut, err := c.requests(e)
	if err != nil {
		return env.OnFile(c.Trace, err)
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	engine, err := c.Start(ctx, e, nil)
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	if engine.Info.Vocab != model.Vocab {
		return fmt.Errorf("%s: it was recorded with %q, which has %d tokens; this model is %q and has %d: "+
			"give the one that was recorded with -m", c.Trace, model.Name, model.Vocab, engine.Info.Name, engine.Info.Vocab)
	}
	result := checked{Requests: len(all), LeftOut: leftOut}
	if err := result.compare(ctx, engine, all); err != nil {
		return err
	}
	if c.JSON {
		if err := env.PrintJSON(e.Stdout, result); err != nil {
			return err
		}
	} else if result.First == nil {
		fmt.Fprintf(e.Stdout, "%s, %s: all the same (%s left out)\n",
			env.Count(result.Requests, "request"), env.Count(result.Tokens, "token"), env.Count(leftOut, "request"))
	}
	if d := result.First; d != nil {
		return fmt.Errorf("%s: request %d, token %d of its answer: %d was recorded, %d is computed here", c.Trace, d.Request,
			d.Token, d.Recorded, d.Computed)
	}
	return nil
}

// compare answers all requests, some at once, and keeps the first difference in the order of requests.
func (r *checked) compare(ctx context.Context, engine *actors.Engine, all []*asked) error {
	var mu sync.Mutex
	var failed error
	places := make(chan struct{}, checkedTogether)
	var wait sync.WaitGroup
	for _, a := range all {
		places <- struct{}{}
		wait.Go(func() {
			same, computed, err := a.again(ctx, engine)
			mu.Lock()
			defer mu.Unlock()
			r.Tokens += same
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("request %d: %w", a.number, err))
			} else if same < len(a.drawn) && (r.First == nil || a.number < r.First.Request) {
				r.First = &difference{a.number, same, a.drawn[same], computed}
			}
			<-places
		})
	}
	wait.Wait()
	return failed
}

// again answers one request. same is the number of equal tokens, computed the token that came instead of the next.
func (a *asked) again(ctx context.Context, engine *actors.Engine) (same int, computed int32, err error) {
	stream, err := engine.Generate(actors.Request{Tokens: a.prompt, MaxTokens: len(a.drawn), Sampling: a.params,
		IgnoreEOG: true})
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

// requests reads the requests of a trace that can be answered again, in the order in which they arrived.
func (c *Replay) requests(e *env.Env) (model *tokentrace.Model, all []*asked, leftOut int, err error) {
	f, err := e.OpenInput(c.Trace)
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := tokentrace.NewReader(f)
	if err != nil {
		return nil, nil, 0, err
	}
	open := map[uint64]*asked{}
	for {
		event, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, 0, err
		}
		switch x := event.(type) {
		case *tokentrace.Open:
			a := &asked{number: len(all), prompt: slices.Clone(x.Prompt)}
			if json.Unmarshal(x.Settings, &a.params) != nil || a.params.Masked {
				a.prompt = nil // without its settings or grammar it cannot be answered again
			}
			open[x.Sequence] = a
			all = append(all, a)
		case *tokentrace.Drawn:
			if a := open[x.Sequence]; a != nil {
				a.drawn = append(a.drawn, x.Token)
			}
		case *tokentrace.End:
			delete(open, x.Sequence)
		}
	}
	whole := slices.DeleteFunc(all, func(a *asked) bool { return len(a.prompt) == 0 || len(a.drawn) == 0 })
	return &r.Model, whole, len(all) - len(whole), nil
}
