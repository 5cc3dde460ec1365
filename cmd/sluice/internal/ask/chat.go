package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/library"
	"github.com/sluice-ai/sluice/stages/chat"
)

type Chat struct {
	compute.EngineFlags
	Prompt []string `arg:"" optional:"" help:"First message, which is asked at once; after -- if it begins with a dash. A first word that names a model is the model."`
	Load   string   `placeholder:"FILE" help:"Go on with a conversation that /save has written."`
	System string   `placeholder:"TEXT" help:"System message: who the model should be, or what it should mind."`
	ThinkFlag
	ImageFlag
	compute.KeepFlag
	SessionFlag
	N int `short:"n" default:"-1" placeholder:"N" help:"Most tokens of an answer; -1: until it ends, as without it."`
	library.PullFlag
	env.ForceFlag
	compute.SamplingFlags
}

func (Chat) Examples() [2]string {
	return [2]string{`sluice chat`, `sluice chat -m model.gguf --system "Answer in one sentence." "What is a gguf file?"`}
}

// Help is what the flags do not say.
func (Chat) Help() string {
	return "Each line is a message; /help lists what else there is to type. Ctrl-C stops an answer, Ctrl-D ends. " +
		"Thinking is dimmed. Lines may also come from a pipe: then only answers are written, without thinking, and " +
		"the first failure ends the program."
}

func (c *Chat) Run(e *env.Env) (err error) {
	if err := tokens(c.N); err != nil {
		return err
	}
	if c.Model, c.Prompt, err = takeModel(e, c.Model, c.Prompt); err != nil {
		return err
	}
	shown, err := c.parts()
	if err != nil {
		return err
	}
	var begun *chat.Conversation
	if c.Load != "" && c.Session != "" {
		return env.Usagef("there are both --load and --session: the conversation is in one of them")
	}
	if c.Load != "" {
		loaded, err := loadTalk(c.Load)
		if err != nil {
			return err
		}
		begun = &loaded
	}
	if err := c.Keep(e, &c.Flags, ""); err != nil {
		return err
	}
	c.Identified()
	kept, err := c.SessionFlag.open(&c.SamplingFlags, &c.Flags)
	if err != nil {
		return err
	}
	defer kept.close()
	engine, err := c.load(context.Background(), e)
	if err != nil {
		return err
	}
	d, err := c.dialogue(engine)
	if err != nil {
		compute.Shut(engine)
		return err
	}
	defer func() { compute.Shut(d.engine) }()
	if err := kept.resume(e, d, c.System); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.save(d)) }()
	d.remembers()
	d.pictures, d.keeps.key = shown, c.StateKey()
	c.remarks(e, engine)
	d.change = func(ctx context.Context, model string) error { return c.change(ctx, e, d, model) }
	d.watch = func(s prompted) func() { return watchReading(e, s) }
	if e.IsTerminal(e.Stdin) && e.IsTerminal(e.Stdout) {
		return c.converse(e, d, begun)
	}
	t := &talk{dialogue: d, read: lines(e.Stdin), replace: c.mayReplace, now: e.Now, interruptible: e.Interruptible,
		answers: e.Pane(e.Stdout), notes: env.Pane{W: e.Stderr}}
	c.begin(t, begun)
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	return t.run(ctx)
}

// begin has a talk go on with an earlier conversation, if there is one, and ask the message of the command line.
// --system counts more than what that conversation began with.
func (c *Chat) begin(t *talk, earlier *chat.Conversation) {
	t.opening = strings.Join(c.Prompt, " ")
	if earlier == nil {
		return
	}
	t.take(*earlier, c.Load)
	if c.System != "" {
		t.setSystem(c.System)
	}
}

// tokens refuses what is no number of tokens for -n.
func tokens(n int) error {
	if n == 0 {
		return env.Usagef("-n is 0, which leaves no answer: want 1 to %d, or -1", env.MaxTokens)
	}
	return env.Within("-n", n, -1, env.MaxTokens)
}

// question is the prompt for a yes or no.
const question = "Replace it? [y/N] "

// ask asks a person whether /save may replace a file.
func (c *Chat) ask(ctx context.Context, t *talk, path string) error {
	if c.Force {
		return nil
	}
	t.note("%s is there already.", env.Printable(path))
	said, err := t.read(ctx, question)
	if err == nil && !env.Yes(strings.NewReader(said)) {
		err = fmt.Errorf("%s was not replaced", env.Printable(path))
	}
	return err
}

// mayReplace is the answer to /save where there is no person to ask.
func (c *Chat) mayReplace(path string) error {
	if !c.Force {
		return fmt.Errorf("%s is there already: chat --force replaces it, or choose another name", path)
	}
	return nil
}

// remarks are what a person should know of a model beforehand.
func (c *Chat) remarks(e *env.Env, engine *actors.Engine) {
	if engine.Info.TemplateNote != "" {
		fmt.Fprintln(e.Stderr, "sluice: "+engine.Info.TemplateNote)
	}
	if note := c.unchanged(engine); note != "" {
		fmt.Fprintln(e.Stderr, "sluice: "+note)
	}
}

func (c *Chat) load(ctx context.Context, e *env.Env) (*actors.Engine, error) {
	ctx, cancel := e.Interruptible(ctx)
	defer cancel()
	if err := c.Fetch(ctx, e, c.Model); err != nil {
		return nil, err
	}
	return c.Start(ctx, e, func(cfg *actors.Config) { cfg.Sequences = 1 })
}

func (c *Chat) dialogue(engine *actors.Engine) (*dialogue, error) {
	params, err := c.Params(engine)
	if err != nil {
		return nil, err
	}
	d := &dialogue{engine: engine, sampling: params, most: max(c.N, 0), thinks: c.ThinkFlag,
		sees: engine.Habits().Sees}
	if c.System != "" {
		d.setSystem(c.System)
	}
	return d, nil
}

// converse talks with a person at a terminal, where Ctrl-C applies to the line or the answer, and does not end the
// program.
func (c *Chat) converse(e *env.Env, d *dialogue, begun *chat.Conversation) error {
	ctx, cancel := e.Terminable(context.Background())
	defer cancel()
	screen := e.Pane(e.Stdout)
	if screen.ANSI { // a second Ctrl-C, just after an answer, must not end the program in the editor's terminal mode
		_, release := e.Interruptible(ctx)
		defer release()
	}
	t := &talk{dialogue: d, now: e.Now, interruptible: e.Interruptible, patient: true, answers: screen, notes: screen}
	d.trims, t.columns = true, func() int { return e.Columns(e.Stdout) }
	t.replace = func(path string) error { return c.ask(ctx, t, path) }
	t.greet(c.Model == "")
	c.begin(t, begun)
	t.read = plain(e)
	if screen.ANSI {
		if ed := newEditor(e, screen); ed != nil {
			defer ed.close()
			path, err := historyPath()
			if err == nil {
				err = ed.remember(path)
			}
			if err != nil {
				t.note("the history of this session is not kept: %v", err)
			}
			t.read, t.keep = ed.read, ed.keep
		}
	}
	return t.run(ctx)
}
