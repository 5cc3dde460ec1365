package ask

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/chat"
)

// command is a command of chat, a line that begins with a slash.
type command struct {
	name, arg, help string
	needs           bool // arg must be given
	do              func(t *talk, ctx context.Context, arg string) error
}

// talkCommands lists the commands in the order of /help.
func talkCommands() []command {
	return []command{
		{name: "/reset", help: "forget the conversation, but not the system message", do: (*talk).doReset},
		{name: "/regen", help: "replace the last answer by another one", do: (*talk).doRegen},
		{name: "/undo", help: "take the last message back, and its answer", do: (*talk).doUndo},
		{name: "/set", arg: "[NAME VALUE]", help: "show how tokens are chosen, or change it: /set temperature 0.5", do: (*talk).doSet},
		{name: "/system", arg: "[TEXT]", help: "show the system message, or set it; - removes it", do: (*talk).doSystem},
		{name: "/save", arg: "FILE", needs: true, help: "write the conversation to a file (JSON)", do: (*talk).doSave},
		{name: "/load", arg: "FILE|MODEL", needs: true, help: "go on with a conversation from a file, or with another model", do: (*talk).doLoad},
		{name: "/show", help: "show what the model is", do: (*talk).doShow},
		{name: "/stats", help: "show tokens, speed, and how full the context is", do: (*talk).doStats},
		{name: "/help", help: "show this", do: (*talk).doHelp},
		{name: "/exit", help: "end, as Ctrl-D and /bye do", do: (*talk).doExit},
	}
}

// completions are the lines that a line may be completed to: commands, names of settings, files.
func completions(line string) (names []string) {
	name, arg, found := strings.Cut(line, " ")
	switch {
	case found && name == "/set":
		for _, setting := range settings() {
			if strings.HasPrefix(setting, arg) {
				names = append(names, name+" "+setting+" ")
			}
		}
		return names
	case found && (name == "/save" || name == "/load"):
		files, _ := filepath.Glob(escapeGlob(arg) + "*") // a bad pattern completes nothing
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.IsDir() {
				file += "/"
			}
			names = append(names, name+" "+file)
		}
		return names
	}
	for _, c := range talkCommands() {
		if strings.HasPrefix(line, "/") && strings.HasPrefix(c.name, line) {
			names = append(names, c.name)
		}
	}
	return names
}

// escapeGlob makes a pattern that matches text alone.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}

func (t *talk) command(ctx context.Context, line string) error {
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	if own, ok := otherNames[name]; ok {
		name = own
	}
	for _, c := range talkCommands() {
		switch {
		case c.name != name:
		case c.needs && arg == "", c.arg == "" && arg != "":
			return fmt.Errorf("want: %s", strings.TrimSpace(c.name+" "+c.arg))
		default:
			return c.do(t, ctx, arg)
		}
	}
	return fmt.Errorf("there is no command %s: /help lists them. A message may begin with a slash after a blank",
		env.Printable(name))
}

// otherNames are what other programs call commands.
var otherNames = map[string]string{"/bye": "/exit", "/quit": "/exit", "/clear": "/reset", "/?": "/help"}

func (t *talk) doHelp(context.Context, string) error {
	var rows []string
	for _, c := range talkCommands() {
		rows = append(rows, fmt.Sprintf("%s %s\t%s", c.name, c.arg, c.help))
	}
	t.table(append(rows,
		`""" … """`+"\ta message of several lines; so does a \\ at the end of each but the last",
		"Alt-Enter\ta further line of the same message",
		"Ctrl-R\tlook for an earlier message: what is typed then is in it",
		"Ctrl-C\tstop an answer, or clear the line",
		"Ctrl-Z\tleave it to the shell, whose fg goes on")...)
	return nil
}

func (t *talk) doReset(context.Context, string) error {
	t.reset()
	t.note("a new conversation")
	return nil
}

func (t *talk) doRegen(ctx context.Context, _ string) error { return t.speak(ctx, t.again) }

func (t *talk) doUndo(context.Context, string) error {
	if !t.undo() {
		return errors.New("there is no message to take back")
	}
	t.note("%s left", env.Count(len(t.Messages), "message"))
	return nil
}

func (t *talk) doSystem(_ context.Context, arg string) error {
	switch arg {
	case "":
		text, ok := t.system()
		if !ok {
			text = "there is no system message"
		}
		t.note("%s", strings.Map(env.Harmless, text))
		return nil
	case "-":
		if _, ok := t.system(); !ok {
			return errors.New("there is no system message to remove")
		}
		t.setSystem("")
		t.note("the system message is gone")
	default:
		t.setSystem(arg)
		t.note("the system message is set, for the whole conversation")
	}
	return nil
}

func (t *talk) doSave(_ context.Context, path string) error {
	replace := path == t.own
	err := saveTalk(path, t.Conversation, replace)
	if errors.Is(err, safefile.ErrTaken) {
		if err = t.replace(path); err == nil {
			replace = true
			err = saveTalk(path, t.Conversation, replace)
		}
	}
	if err != nil {
		return err
	}
	t.own = path
	t.note("%s saved%s", env.Count(len(t.Messages), "message"), t.keepBeside(path, replace))
	return nil
}

func (t *talk) doLoad(ctx context.Context, what string) error {
	err := errNoModel
	if t.change != nil {
		err = t.change(ctx, what)
	}
	if !errors.Is(err, errNoModel) {
		return t.changed(err)
	}
	c, err := loadTalk(what)
	if err != nil {
		return err
	}
	t.take(c, what)
	return nil
}

// changed says who answers after a change of the model, or that nobody does.
func (t *talk) changed(err error) error {
	t.ended = errors.Is(err, errNobody)
	if err == nil {
		t.greet(false)
		if len(t.Messages) > 0 {
			t.note("the conversation goes on with it; /reset begins a new one")
		}
	}
	return err
}

// take goes on with a conversation that was read from a file.
func (t *talk) take(c chat.Conversation, path string) {
	t.reset()
	t.Conversation, t.own = c, path
	t.note("%s loaded%s", env.Count(len(c.Messages), "message"), t.findBeside(path))
}

func (t *talk) doStats(context.Context, string) error {
	all := t.tally.sum
	t.table(append(t.counts(),
		row("session", "%s: %d tokens read, %d more cached, %d written", env.Count(int(t.tally.answers), "answer"),
			all.Prompt-all.Cached, all.Cached, all.Generated),
		row("context", "%d of %d tokens used", t.used(), t.engine.Info.Context),
		row("seed", "%d", t.sampling.Seed))...)
	return nil
}

// counts are rows about the last answer and its prompt, if there is one.
func (t *talk) counts() []string {
	u := t.tally.last
	if u.Prompt == 0 {
		return nil
	}
	speed := func(n int, d time.Duration) string { return fmt.Sprintf("%.0f tokens a second", env.Rate(n, d)) }
	return []string{
		row("prompt", "%s, %d of them cached; %s", env.Count(u.Prompt, "token"), u.Cached, speed(u.Prompt-u.Cached, u.Prefill)),
		row("answer", "%s; %s", env.Count(u.Generated, "token"), speed(u.Generated-1, u.Decode)),
	}
}

// row is a row of a table of two columns.
func row(name, format string, a ...any) string { return name + "\t" + fmt.Sprintf(format, a...) }

func (t *talk) doShow(context.Context, string) error {
	info := &t.engine.Info
	t.table("model\t"+env.Printable(info.Name), "architecture\t"+env.Printable(info.Architecture),
		fmt.Sprintf("parameters\t%s, %s of weights", env.Parameters(info.Parameters), env.BinarySize(info.WeightBytes)),
		fmt.Sprintf("context\t%d tokens, of %d that it was trained for", info.Context, info.Trained))
	return nil
}

func (t *talk) doExit(context.Context, string) error {
	t.ended = true
	return nil
}
