package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/actors"
)

type chatCmd struct {
	engineFlags
	System string `placeholder:"TEXT" help:"System message: who the model should be, or what it should mind."`
	N      int    `short:"n" placeholder:"N" help:"Most tokens of an answer; -1: until it ends, as without it."`
	pullFlag
	forceFlag
	samplingFlags
}

func (chatCmd) Examples() [2]string {
	return [2]string{`sluice chat`, `sluice chat -m model.gguf --system "Answer in one sentence."`}
}

// Help is what the flags do not say.
func (chatCmd) Help() string {
	return "Each line is a message; /help lists what else there is to type. Ctrl-C stops an answer, Ctrl-D ends. " +
		"Thinking is dimmed. Lines may also come from a pipe: then only answers are written, without thinking, and " +
		"the first failure ends the program."
}

func (c *chatCmd) Run(e *env) error {
	if err := within("-n", c.N, -1, maxTokens); err != nil {
		return err
	}
	engine, err := c.load(e)
	if err != nil {
		return err
	}
	defer shut(engine)
	d, err := c.dialogue(engine)
	if err != nil {
		return err
	}
	if engine.Info.TemplateNote != "" {
		fmt.Fprintln(e.stderr, "sluice: "+engine.Info.TemplateNote)
	}
	if e.isTerminal(e.stdin) && e.isTerminal(e.stdout) {
		return c.converse(e, d)
	}
	t := &talk{dialogue: d, read: lines(e.stdin), replace: c.mayReplace, now: e.now, interruptible: e.interruptible,
		answers: pane{e.stdout, ansi(e, e.stdout)}, notes: pane{w: e.stderr}}
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	return t.run(ctx)
}

// question is the prompt where yes or no is wanted.
const question = "Replace it? [y/N] "

// ask asks a person whether /save may replace a file.
func (c *chatCmd) ask(ctx context.Context, t *talk, path string) error {
	if c.Force {
		return nil
	}
	t.note("%s is there already.", printable(path))
	said, err := t.read(ctx, question)
	if err == nil && !yes(strings.NewReader(said)) {
		err = fmt.Errorf("%s was not replaced", printable(path))
	}
	return err
}

// mayReplace is what /save asks where nobody can be asked.
func (c *chatCmd) mayReplace(path string) error {
	if !c.Force {
		return fmt.Errorf("%s is there already: chat --force replaces it, or choose another name", path)
	}
	return nil
}

func (c *chatCmd) load(e *env) (*actors.Engine, error) {
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	if err := c.fetch(ctx, e, c.Model); err != nil {
		return nil, err
	}
	return c.start(ctx, e, func(cfg *actors.Config) { cfg.Sequences = 1 })
}

func (c *chatCmd) dialogue(engine *actors.Engine) (*dialogue, error) {
	params, err := c.params(engine)
	if err != nil {
		return nil, err
	}
	d := &dialogue{engine: engine, sampling: params, most: max(c.N, 0)}
	if c.System != "" {
		d.setSystem(c.System)
	}
	return d, nil
}

// converse talks with a person at a terminal, where Ctrl-C belongs to the line or the answer, and not to the program.
func (c *chatCmd) converse(e *env, d *dialogue) error {
	ctx, cancel := e.terminable(context.Background())
	defer cancel()
	screen := pane{e.stdout, ansi(e, e.stdout)}
	if screen.ansi { // a second Ctrl-C, just after an answer, must not end the program in the editor's terminal mode
		_, release := e.interruptible(ctx)
		defer release()
	}
	t := &talk{dialogue: d, now: e.now, interruptible: e.interruptible, patient: true, answers: screen, notes: screen}
	d.trims, t.columns = true, func() int { return e.columns(e.stdout) }
	t.replace = func(path string) error { return c.ask(ctx, t, path) }
	t.greet(c.Model == "")
	t.read = plain(e)
	if screen.ansi {
		if ed := newEditor(e, screen); ed != nil {
			defer ed.close()
			path, err := historyPath()
			if err == nil {
				err = ed.remember(path)
			}
			if err != nil {
				t.note("the history of this session is not kept: %v", err)
			}
			t.read = ed.read
		}
	}
	return t.run(ctx)
}
