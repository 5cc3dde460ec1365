package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/library"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
)

// Run answers a prompt.
// Wide: they are the flags of a command.
type Run struct {
	compute.EngineFlags
	Prompt []string `arg:"" optional:"" help:"What to ask; after -- if it begins with a dash. A text on standard input is added; - waits for one, and so does a command without a prompt."`
	File   []string `short:"f" sep:"none" placeholder:"FILE" help:"File to add to the prompt; - is standard input. May be repeated."`
	N      int      `short:"n" default:"-1" placeholder:"N" help:"Most tokens to generate; -1: until the answer ends, as without it."`
	System string   `help:"System message to put before the prompt."`
	Raw    bool     `help:"Complete the text as it is, without the chat template, and print nothing but what was generated."`
	Tokens *string  `placeholder:"IDS" help:"Token ids as they are, such as 1,2,3, instead of a prompt."`
	Stop   []string `sep:"none" placeholder:"TEXT" help:"Text that ends the answer. May be repeated."`

	ThinkFlag
	ImageFlag
	compute.KeepFlag
	SessionFlag
	IgnoreEOS bool `name:"ignore-eos" help:"Go on after the end of the answer."`
	JSON      bool `name:"json" help:"Print one JSON object instead of text."`
	compute.RecordFlags
	library.PullFlag
	compute.TraceFlag
	env.ForceFlag
	compute.GrammarFlags
	compute.SamplingFlags
}

func (Run) Examples() [2]string {
	return [2]string{
		`sluice run "What is the capital of France?"`,
		`sluice run -m model.gguf -f notes.txt "Summarise these notes in three sentences."`,
	}
}

func (c *Run) Run(e *env.Env) (err error) {
	if c.Tokens == nil {
		if c.Model, c.Prompt, err = takeModel(e, c.Model, c.Prompt); err != nil {
			return err
		}
	}
	prompt, err := c.prompt(e)
	if err != nil {
		return err
	}
	form, err := c.form(e)
	if err != nil {
		return err
	}
	shown, err := c.parts()
	if err != nil {
		return err
	}
	spans, done, err := c.TraceFlag.Open(e, c.Force, c.Model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	if err := c.Fetch(ctx, e, c.Model); err != nil {
		return err
	}
	began := e.Now()
	kept, err := c.keep(e)
	if err != nil {
		return err
	}
	defer kept.close()
	tape, err := c.Begin(e, c.Force, c.Model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tape.Close()) }()
	engine, err := c.Start(ctx, e, func(cfg *actors.Config) {
		cfg.Sequences, cfg.Trace = 1, spans
		tape.Attach(&cfg.Model)
	})
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	if kept != nil {
		return c.goOn(ctx, e, kept, &dialogue{engine: engine, pictures: shown, form: form}, prompt)
	}
	loaded := e.Now()
	request, err := c.request(e, engine, prompt, shown)
	if err != nil {
		return err
	}
	request.Form = form
	return c.answer(ctx, e, engine, request, began, loaded)
}

// answer prints the answer to a request. Loading began and ended at these times.
func (c *Run) answer(ctx context.Context, e *env.Env, engine *actors.Engine, r actors.Request,
	began, loaded time.Time) error {
	stream, err := engine.Generate(r)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer c.note(e, stream)
	if c.JSON {
		return c.printJSON(ctx, e, stream, began, loaded)
	}
	return c.printText(ctx, e, stream, engine.Info.Context)
}

// note logs the counts and times of an answer.
func (c *Run) note(e *env.Env, s *actors.Stream) {
	u, log := s.Usage(), c.Logger(e)
	log.Debug().Int("prompt", u.Prompt).Int("cached", u.Cached).Dur("queue_ms", u.Queue).Dur("prefill_ms", u.Prefill).
		Float64("prefill_tokens_per_second", env.Rate(u.Prompt-u.Cached, u.Prefill)).Int("generated", u.Generated).
		Dur("decode_ms", u.Decode).Float64("decode_tokens_per_second", env.Rate(u.Generated-1, u.Decode)).
		Uint64("seed", *c.Seed).Float32("temperature", *c.Temp).Msg("answered")
}

// takeModel takes the first word as the model if -m is missing and the word names a file or a model of the store, as
// similar programs do. A word that can only be such a name, but names nothing, is an error: otherwise the embedded
// model would answer it.
func takeModel(e *env.Env, model string, words []string) (string, []string, error) {
	if model != "" || len(words) == 0 {
		return model, words, nil
	}
	word := words[0]
	if strings.ContainsAny(word, " \t\n") || word == "-" {
		return model, words, nil
	}
	switch known, named := namedmodel.Known(e.Lookup, word); {
	case known:
		return word, words[1:], nil
	case named:
		return "", nil, env.Usagef("%[1]s is no file, and no model of the store: pull it (sluice pull %[1]s), or name one with -m; "+
			"as a question, give it on standard input", word)
	}
	return model, words, nil
}

// prompt is the text to answer; none if ids were given.
func (c *Run) prompt(e *env.Env) (string, error) {
	if err := tokens(c.N); err != nil {
		return "", err
	}
	switch {
	case c.System != "" && (c.Raw || c.Tokens != nil):
		return "", env.Usagef("--system needs the chat template, which --raw and --tokens leave out: drop one of them")
	case len(c.Image) > 0 && (c.Raw || c.Tokens != nil):
		return "", env.Usagef("--image needs the chat template, which --raw and --tokens leave out: drop one of them")
	case c.Tokens != nil && len(c.Prompt)+len(c.File) > 0:
		return "", env.Usagef("there are both a prompt and --tokens: give one of them")
	case c.Tokens != nil:
		return "", nil
	case len(c.Prompt)+len(c.File) == 0 && e.IsTerminal(e.Stdin) && c.Model != "":
		return "", env.Usagef(`there is no prompt: sluice run -m %[1]s "What is the capital of France?", or sluice chat -m %[1]s`,
			c.Model)
	case len(c.Prompt)+len(c.File) == 0 && e.IsTerminal(e.Stdin):
		return "", env.Usagef(`there is no prompt: sluice run "What is the capital of France?"`)
	}
	text, err := e.Question(c.Prompt, c.File)
	if err == nil && (text == "" || !c.Raw && strings.TrimSpace(text) == "") {
		err = env.Usagef("the prompt is empty: want a text, from the command line, -f or standard input")
	}
	return text, err
}

// form is the form that the answer must have; nil: any. It is read before the model, so that an error in it costs no
// time.
func (c *Run) form(e *env.Env) (*constrain.Form, error) {
	if !c.Given() {
		return nil, nil
	}
	if c.IgnoreEOS {
		return nil, env.Usagef("--ignore-eos goes on after the end of an answer, which a grammar does not: drop one of them")
	}
	return c.Form(e)
}

func (c *Run) request(e *env.Env, engine *actors.Engine, prompt string, shown []chat.Part) (
	actors.Request, error) {
	if c.Temp == nil {
		c.Temp = new(float32) // one question, one answer: the likeliest, unless asked otherwise
	}
	params, err := c.Params(engine)
	if err != nil {
		return actors.Request{}, err
	}
	r := actors.Request{MaxTokens: max(c.N, 0), Sampling: params, Stop: c.Stop, IgnoreEOG: c.IgnoreEOS}
	if c.IgnoreEOS {
		r.Sampling.IgnoreEOG = engine.Vocab().EOG()
	}
	switch {
	case c.Tokens != nil:
		if r.Tokens, err = models.ParseIDs(*c.Tokens, engine.Info.Vocab); err != nil {
			return r, env.Usagef("--tokens: %v", err)
		}
	case c.Raw:
		r.Text = prompt
	default:
		if engine.Info.TemplateNote != "" {
			fmt.Fprintln(e.Stderr, "sluice: "+engine.Info.TemplateNote)
		}
		if note := c.unchanged(engine); note != "" {
			fmt.Fprintln(e.Stderr, "sluice: "+note)
		}
		messages := conversation(c.System, prompt)
		asked := &messages[len(messages)-1]
		asked.Parts = append(shown, asked.Parts...)
		if messages, err = placed(engine, messages); err != nil {
			return r, err
		}
		r.Chat = &chat.Input{Messages: messages, AddGenerationPrompt: true, Extra: c.vars()}
	}
	return r, nil
}

// conversation is a system message, if there is one, and a question.
func conversation(system, prompt string) []chat.Message {
	var messages []chat.Message
	if system != "" {
		messages = append(messages, chat.Say("system", system))
	}
	return append(messages, chat.Say("user", prompt))
}

// printText prints the answer as it comes. It adds a newline at the end if there is none, unless a program wants the
// exact bytes. On a terminal lines are broken between words.
func (c *Run) printText(ctx context.Context, e *env.Env, s *actors.Stream, context int) error {
	var ev actors.Event
	var wrap env.Wrapper
	if e.IsTerminal(e.Stdout) && !c.Raw {
		wrap.Width = e.Columns(e.Stdout)
	}
	begun := watchReading(e, s)
	last, finish := byte('\n'), actors.Running
	for {
		err := s.Next(ctx, &ev)
		if begun(); err != nil {
			fmt.Fprint(e.Stdout, wrap.Rest())
		}
		if err != nil && last != '\n' && (!c.Raw || e.IsTerminal(e.Stdout)) {
			fmt.Fprintln(e.Stdout)
		}
		if errors.Is(err, io.EOF) {
			c.cut(e, s.Usage(), finish, context)
			return nil
		}
		if err != nil {
			return err
		}
		if finish = ev.Finish; wrap.Width == 0 {
			_, err = e.Stdout.Write(ev.Text)
		} else {
			_, err = io.WriteString(e.Stdout, wrap.Take(string(ev.Text)))
		}
		if err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
		if n := len(ev.Text); n > 0 {
			last = ev.Text[n-1]
		}
	}
}

// cut says of an answer that ended in its middle why it did. Where -n ended it, a program knows that itself.
func (c *Run) cut(e *env.Env, u actors.Usage, finish actors.Finish, context int) {
	switch {
	case finish != actors.Length || c.IgnoreEOS:
	case u.Prompt+u.Generated >= context:
		fmt.Fprintf(e.Stderr, "sluice: the answer was cut: the context of %d tokens is full (--ctx sets its size)\n", context)
	case e.IsTerminal(e.Stderr):
		fmt.Fprintf(e.Stderr, "sluice: the answer was cut: -n lets it have %s\n", env.Count(c.N, "token"))
	}
}

// Answer is what run --json prints. Its names are part of the interface.
type Answer struct {
	Tokens       []int32       `json:"tokens"`
	Text         string        `json:"text"`
	Finish       actors.Finish `json:"finish"`
	PromptTokens int           `json:"prompt_tokens"`
	Seed         uint64        `json:"seed"` // that was asked for, or drawn
	Timings      timings       `json:"timings"`
}

type timings struct {
	LoadMS          float64 `json:"load_ms"`
	FirstTokenMS    float64 `json:"first_token_ms"` // since loading began
	PrefillMS       float64 `json:"prefill_ms"`
	DecodeMS        float64 `json:"decode_ms"`
	PrefillTokens   float64 `json:"prefill_tokens_per_second"`
	DecodeTokens    float64 `json:"decode_tokens_per_second"`
	CachedTokens    int     `json:"cached_tokens"`
	GeneratedTokens int     `json:"generated_tokens"`
}

func (c *Run) printJSON(ctx context.Context, e *env.Env, s *actors.Stream, began, loaded time.Time) error {
	a := Answer{Tokens: []int32{}, Seed: *c.Seed}
	var text strings.Builder
	var ev actors.Event
	for {
		err := s.Next(ctx, &ev)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if ev.HasToken {
			if len(a.Tokens) == 0 {
				a.Timings.FirstTokenMS = ms(e.Now().Sub(began))
			}
			a.Tokens = append(a.Tokens, ev.Token)
		}
		text.Write(ev.Text)
		a.Finish = ev.Finish
	}
	u := s.Usage()
	a.Text, a.PromptTokens = text.String(), u.Prompt
	a.Timings = timings{
		LoadMS: ms(loaded.Sub(began)), FirstTokenMS: a.Timings.FirstTokenMS, PrefillMS: ms(u.Prefill), DecodeMS: ms(u.Decode),
		CachedTokens: u.Cached, GeneratedTokens: u.Generated,
		PrefillTokens: env.Rate(u.Prompt-u.Cached, u.Prefill), DecodeTokens: env.Rate(u.Generated-1, u.Decode),
	}
	return env.PrintResult(e.Stdout, a)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
