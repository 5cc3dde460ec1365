package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Why explains a token of the past.
type Why struct {
	compute.EngineFlags
	pastFlags

	Request string `arg:"" placeholder:"REQUEST" help:"Request of the trace: its number from 0, or its id."`
	Token   int    `arg:"" placeholder:"TOKEN" help:"Token of its answer, from 0."`
	Top     int    `name:"top" default:"5" placeholder:"N" help:"How many of the likeliest tokens to show, 1 to 20. Default: 5."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (Why) Examples() [2]string {
	return [2]string{`sluice why run.trace 0 12 -m model.gguf`, `sluice why state 4f2a9c81b30001 0 -m model.gguf --json`}
}

// Help is what the flags do not say.
func (Why) Help() string {
	return "The answer is computed again up to that token, as it was recorded. Exit status 1: another token comes here."
}

// explained is what is printed. Its JSON names are part of the interface.
type explained struct {
	Request  int                `json:"request"`
	ID       string             `json:"id,omitempty"`
	Model    string             `json:"model"`
	Arrived  time.Time          `json:"arrived,omitzero"`
	Token    int                `json:"token"`
	Recorded piece              `json:"recorded"`
	Computed piece              `json:"computed"`
	Position int                `json:"position"` // tokens before it
	Stages   []stage            `json:"stages"`
	Experts  [][]int32          `json:"experts,omitempty"` // by layer with experts
	Waited   map[string]float64 `json:"waited_ms"`         // since the token before, by cause
}

type piece struct {
	ID   int32  `json:"id"`
	Text string `json:"text"`
}

// stage is a stage of choosing, with the texts of tokens.
type stage struct {
	sample.Stage
	Top    []candidate `json:"top"`
	Chosen *candidate  `json:"chosen"`
}

type candidate struct {
	sample.Candidate
	Text string `json:"text"`
}

func (c *Why) Run(e *env.Env) error {
	if err := env.Within("--top", c.Top, 1, 20); err != nil {
		return err
	}
	h, err := c.read(e, window{})
	if err != nil {
		return err
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	seen := &reel{}
	tape := actors.NewTape(seen, false)
	engine, err := c.Start(ctx, e, func(cfg *actors.Config) {
		cfg.Sequences, cfg.Speculate, cfg.Tapes = 1, false, []*actors.Tape{tape}
	})
	if err != nil {
		tape.Close()
		return err
	}
	what, choice, err := c.explain(ctx, h, engine)
	compute.Shut(engine)
	tape.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Trace, err)
	}
	if what.Experts, err = seen.experts(); err != nil {
		return err
	}
	c.describe(what, choice, engine.Vocab())
	if c.JSON {
		err = env.PrintJSON(e.Stdout, what)
	} else {
		err = what.print(e)
	}
	if err == nil && what.Recorded.ID != what.Computed.ID {
		err = fmt.Errorf("%s: request %d, token %d of its answer: %d was recorded, %d is computed here", c.Trace, what.Request,
			what.Token, what.Recorded.ID, what.Computed.ID)
	}
	return err
}

// find finds the request, and the index of the token among those that the trace has of it.
func (c *Why) find(all []*past) (found *past, index int, err error) {
	number, notNumber := strconv.Atoi(c.Request)
	id := requestID(c.Request)
	var same []string
	for _, p := range all {
		i := c.Token - p.recorded.Drawn
		if (notNumber == nil && p.number == number || p.recorded.ID != "" && p.recorded.ID == id) && i >= 0 {
			if same = append(same, strconv.Itoa(p.number)); found == nil || index >= len(found.drawn) {
				found, index = p, i
			}
		}
	}
	switch {
	case found == nil:
		return nil, 0, fmt.Errorf("there is no request %s of this model: want a number below that of its requests, or an id, as "+
			"the log, the header X-Request-Id and replies have it", c.Request)
	case len(same) > 1 && notNumber != nil && index < len(found.drawn):
		return nil, 0, fmt.Errorf("requests %s have the id %s, of several answers, or of one that was begun again: want a number",
			strings.Join(same, ", "), c.Request)
	case index >= len(found.drawn):
		return nil, 0, fmt.Errorf("request %s has %d tokens here: token %d is not there", c.Request,
			found.recorded.Drawn+len(found.drawn), c.Token)
	case found.odd != nil:
		return nil, 0, fmt.Errorf("request %s cannot be answered again: %w", c.Request, found.odd)
	}
	return found, index, nil
}

// explain computes the token again.
func (c *Why) explain(ctx context.Context, h *history, engine *actors.Engine) (*explained, *sample.Choice, error) {
	all, err := h.of(c.Trace, &engine.Info)
	if err != nil {
		return nil, nil, err
	}
	p, index, err := c.find(all)
	if err != nil {
		return nil, nil, err
	}
	var choice *sample.Choice
	r := p.again
	r.Drawn = append(append([]int32{}, r.Drawn...), p.drawn[:index]...)
	r.MaxTokens = len(r.Drawn) + 1
	r.Explains = func(x *sample.Choice) { choice = x }
	if index > 0 && r.Sampling.Mirostat != 0 { // its state is that behind all tokens: they are drawn again
		r.Drawn, r.MaxTokens = p.again.Drawn, p.again.MaxTokens+index+1
	}
	stream, err := engine.Generate(r)
	if err != nil {
		return nil, nil, err
	}
	defer stream.Close()
	var ev actors.Event
	for err == nil {
		err = stream.Next(ctx, &ev)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, nil, err
	case choice == nil:
		return nil, nil, errors.New("no token is drawn there: the answer ends before it")
	}
	what := &explained{Request: p.number, ID: p.recorded.ID, Model: p.model.Name, Arrived: p.at, Token: c.Token,
		Recorded: piece{ID: p.drawn[index]}, Position: choice.Position, Waited: map[string]float64{}}
	for _, s := range p.waits[index] {
		if s.Cause < int(bill.Causes) {
			what.Waited[bill.Cause(s.Cause).String()] += float64(s.Time) / 1e3
		}
	}
	return what, choice, nil
}

// describe adds the stages of the choice, and texts.
func (c *Why) describe(what *explained, choice *sample.Choice, vocab *token.Vocab) {
	of := func(x sample.Candidate) candidate { return candidate{x, string(vocab.Piece(x.ID))} }
	what.Recorded.Text = string(vocab.Piece(what.Recorded.ID))
	what.Computed = piece{choice.ID, string(vocab.Piece(choice.ID))}
	for _, s := range choice.Stages {
		told := stage{Stage: s, Top: []candidate{}}
		for _, x := range s.Top[:min(c.Top, len(s.Top))] {
			told.Top = append(told.Top, of(x))
		}
		if s.Chosen != nil {
			chosen := of(*s.Chosen)
			told.Chosen = &chosen
		}
		what.Stages = append(what.Stages, told)
	}
}

// print prints it for a person.
func (x *explained) print(e *env.Env) error {
	name := fmt.Sprint(x.Request)
	if x.ID != "" {
		name += " (" + env.Printable(x.ID) + ")"
	}
	fmt.Fprintf(e.Stdout, "request %s of %s, token %d of its answer, at position %d: %d %q\n", name, env.Printable(x.Model),
		x.Token, x.Position, x.Recorded.ID, x.Recorded.Text)
	if x.Computed.ID != x.Recorded.ID {
		fmt.Fprintf(e.Stdout, "here it is another one: %d %q\n", x.Computed.ID, x.Computed.Text)
	}
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nstage\tleft\tits share\tlikeliest")
	for i := range x.Stages {
		s := &x.Stages[i]
		share, title := "removed", s.Of.String()
		if s.Chosen != nil {
			share = percent(s.Chosen.Share)
		}
		if s.Value != 0 && s.Of != sample.Form {
			title += " " + strconv.FormatFloat(s.Value, 'g', 4, 32)
		}
		var top []string
		for _, c := range s.Top {
			top = append(top, fmt.Sprintf("%q %s", c.Text, percent(c.Share)))
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", title, s.Left, share, strings.Join(top, "  "))
	}
	for layer, experts := range x.Experts {
		fmt.Fprintf(t, "experts %d\t%d\t\t%s\n", layer, len(experts), strings.Trim(fmt.Sprint(experts), "[]"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var waited []string
	for c := range bill.Causes {
		if ms := x.Waited[c.String()]; ms > 0 {
			waited = append(waited, fmt.Sprintf("%s %.3f ms", c, ms))
		}
	}
	if len(waited) > 0 {
		fmt.Fprintf(e.Stdout, "\nIts time since the token before, or since the request came: %s\n", strings.Join(waited, ", "))
	}
	return nil
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// reel keeps a tape in memory.
type reel struct{ bytes.Buffer }

// Append implements actors.TapeSink.
func (m *reel) Append(records []byte, head func() []byte) {
	if m.Len() == 0 {
		m.Write(head())
	}
	m.Write(records)
}

// Lost implements actors.TapeSink. One request is not too much.
func (m *reel) Lost(error) {}

// Close implements actors.TapeSink.
func (m *reel) Close() {}

// experts are those of the last row of the last step, by layer.
func (m *reel) experts() (chosen [][]int32, err error) {
	r, err := tokentrace.NewReader(&m.Buffer)
	if err != nil {
		return nil, err
	}
	chosen = make([][]int32, len(r.Model.Layers))
	for {
		event, err := r.Next()
		if errors.Is(err, io.EOF) {
			return chosen, nil
		}
		if err != nil {
			return nil, err
		}
		if x, ok := event.(*tokentrace.Chosen); ok {
			used := r.Model.Layers[x.Layer].Used
			chosen[x.Layer] = x.Experts[max(len(x.Experts)-used, 0):]
		}
	}
}
