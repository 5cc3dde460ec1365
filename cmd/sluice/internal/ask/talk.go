package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/refusal"
)

// talk reads messages and commands, and shows answers and results.
type talk struct {
	*dialogue
	read    lineReader
	answers env.Pane                // what the model says
	notes   env.Pane                // remarks of this program
	patient bool                    // a person types: a failure is shown, and the talk goes on
	opening string                  // a message that is asked before any is read
	own     string                  // the file that this conversation was saved to or loaded from
	keep    func(text string)       // remembers a message as it was typed; nil: nobody does
	replace func(path string) error // asks whether a file may be replaced; nil: yes
	ended   bool
	verbose bool       // all counts are shown after an answer
	columns func() int // of the screen; nil: remarks are not wrapped
	cleared time.Time  // when Ctrl-C cleared a line, if nothing came since
	now     func() time.Time

	interruptible func(context.Context) (context.Context, context.CancelFunc) // for an answer; Ctrl-C ends it
}

const (
	prompt     = "› "
	promptMore = "… " // of further lines of a message
	quotes     = `"""`

	twice = 2 * time.Second // two Ctrl-C within this time end the talk
)

func (t *talk) greet(embedded bool) {
	info := &t.engine.Info
	kind := ""
	if embedded {
		kind = ", the small demonstration model of this program"
	}
	fmt.Fprintln(t.notes.W, t.wrap(env.Printable(info.Name)+kind))
	t.note("%s parameters · context of %d tokens · /help says what else to type, Ctrl-D ends",
		env.Parameters(info.Parameters), info.Context)
}

// run reads and answers messages until the lines end, the person leaves, or ctx ends.
func (t *talk) run(ctx context.Context) error {
	for !t.ended {
		text, err := t.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLeft) && t.now().Sub(t.cleared) < twice:
			return nil
		case errors.Is(err, errLeft), errors.Is(err, errCleared):
			t.cleared = t.now()
			t.note("Ctrl-D ends, and so does Ctrl-C twice")
			continue
		case err == nil:
			err = t.respond(ctx, text)
		}
		if err != nil && (!t.patient || t.ended || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			fmt.Fprintln(t.notes.W, t.wrap(err.Error()))
		}
	}
	return nil
}

// next is the first message, if the command line has one, and then what is read.
func (t *talk) next(ctx context.Context) (string, error) {
	text := t.opening
	if t.opening = ""; text == "" {
		return t.message(ctx)
	}
	if t.patient {
		fmt.Fprintln(t.notes.W, prompt+env.Printable(text))
	}
	if t.keep != nil {
		t.keep(text)
	}
	return text, nil
}

// message reads one message: a line, lines joined by \ at their ends, or a block between """. The end of the input ends
// it, too.
func (t *talk) message(ctx context.Context) (string, error) {
	text, err := t.read(ctx, prompt)
	if err != nil {
		return "", err
	}
	t.cleared = time.Time{}
	mark, open := "", func(s string) (string, bool) { return strings.CutSuffix(s, `\`) }
	if block, ok := strings.CutPrefix(text, quotes); ok {
		mark, text = quotes, block
		open = func(s string) (string, bool) {
			s, closed := strings.CutSuffix(strings.TrimRight(s, " \t"), quotes)
			return s, !closed
		}
	}
	if text, err = t.more(ctx, text, open); err == nil && t.keep != nil {
		t.keep(mark + text + mark)
	}
	return text, err
}

// more appends lines to text as long as open reports that the text continues; open also removes the mark of
// continuation.
func (t *talk) more(ctx context.Context, text string, open func(string) (string, bool)) (string, error) {
	text, goesOn := open(text)
	for goesOn {
		line, err := t.read(ctx, promptMore)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		line, goesOn = open(line)
		text += "\n" + line
	}
	return text, nil
}

// respond executes a message: a picture to show, a command, or a question to answer. A leading blank makes a question
// of a line that begins with a slash.
func (t *talk) respond(ctx context.Context, text string) error {
	if taken, err := t.takes(ctx, text); taken || err != nil {
		return err
	}
	if strings.HasPrefix(text, "/") && !strings.Contains(text, "\n") {
		return t.command(ctx, text)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	return t.speak(ctx, func(ctx context.Context, show func(piece) error) (reply, error) {
		return t.ask(ctx, text, show)
	})
}

// speak shows an answer as it comes. A person's Ctrl-C ends it without an error.
func (t *talk) speak(ctx context.Context,
	answer func(ctx context.Context, show func(piece) error) (reply, error),
) error {
	heard, done := t.interruptible(ctx)
	defer done()
	v := voice{Pane: t.answers}
	if t.columns != nil {
		v.Width = t.columns()
	}
	got, err := answer(heard, v.say)
	err = errors.Join(err, v.end())
	if got.left > 0 {
		t.note("the context of %d tokens was full: the oldest %s left out of what the model sees", t.engine.Info.Context,
			were(got.left, "message"))
	}
	var refused *refusal.Error
	switch {
	case t.patient && errors.Is(err, context.Canceled) && ctx.Err() == nil:
		if got.kept {
			t.note("stopped")
		} else {
			t.note("stopped before the answer began: the message was not kept")
		}
	case errors.As(err, &refused):
		return fmt.Errorf("%w\nThe message was not kept. /reset begins a new conversation", err)
	case err != nil:
		return err
	case got.finish == actors.Length && t.full():
		t.remark()
		next := ""
		if t.trims {
			next = "the next message leaves the oldest out, /undo takes this one back, "
		}
		t.note("the context of %d tokens is full: %s/reset begins a new conversation, --ctx sets the size",
			t.engine.Info.Context, next)
	case got.finish == actors.Length && t.patient:
		t.remark()
		t.note("the answer was cut: -n lets it have %s", env.Count(t.most, "token"))
	default:
		t.remark()
	}
	if t.patient {
		fmt.Fprintln(t.notes.W) // room before the next line
	}
	return nil
}

// remark shows the counts of the last answer in a line.
func (t *talk) remark() {
	u := t.tally.last
	switch {
	case !t.patient:
	case t.verbose:
		t.table(t.counts()...)
	default:
		t.note("%s, %.0f a second", env.Count(u.Generated, "token"), env.Rate(u.Generated-1, u.Decode))
	}
}

func were(n int, noun string) string {
	if n == 1 {
		return noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// note shows a remark, dimmed.
func (t *talk) note(format string, a ...any) {
	fmt.Fprintln(t.notes.W, t.notes.Dimmed(t.wrap(fmt.Sprintf(format, a...))))
}

// wrap breaks lines between words, where a person reads them.
func (t *talk) wrap(text string) string {
	if t.columns == nil {
		return text
	}
	return env.Wrapped(text, t.columns())
}

// table shows rows whose columns end in tabs.
func (t *talk) table(rows ...string) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, strings.Join(rows, "\n"))
	w.Flush()
	t.note("%s", text.String())
}
