package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/server"
)

type Top struct {
	Every int `default:"1" placeholder:"SECONDS" help:"How often to look, 1 to 60. Default: 1."`
	remoteFlags
}

func (Top) Examples() [2]string {
	return [2]string{`sluice top`, `sluice top --addr 127.0.0.1:8081 --every 5`}
}

// Help is what the flags do not say.
func (Top) Help() string {
	return "q or Ctrl-C ends it. Where there is no terminal, it prints what happened between two looks and ends."
}

// The escape sequences of a screen of its own: xterm's alternate screen, DECTCEM, ECMA-48.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// resized is how often the size of the terminal is checked.
const resized = 200 * time.Millisecond

func (c *Top) Run(e *env.Env) error {
	if err := env.Within("--every", c.Every, 1, 60); err != nil {
		return err
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	first, err := c.look(ctx, e)
	if err != nil {
		return err
	}
	t := &topView{addr: c.Addr, before: first, now: first, Pane: e.Pane(e.Stdout)}
	if err := c.meet(ctx, e, t); err != nil {
		return err
	}
	kind, _ := e.Lookup("TERM")
	if !e.IsTerminal(e.Stdout) || kind == "" || kind == "dumb" {
		return c.once(ctx, e, t)
	}
	if _, err := io.WriteString(e.Stdout, enterScreen); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	defer io.WriteString(e.Stdout, leaveScreen) //nolint:errcheck // there is nobody left to tell
	defer listen(e, cancel)()
	return c.watch(ctx, e, t)
}

// listen calls end when q or Ctrl-C is typed. The terminal shows nothing of what is typed until restore is called.
func listen(e *env.Env, end func()) (restore func()) {
	restore = func() {}
	if !e.IsTerminal(e.Stdin) {
		return restore
	}
	if in, ok := e.Stdin.(*os.File); ok {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return restore
		}
		restore = func() { _ = term.Restore(int(in.Fd()), before) } // the terminal may be gone
	}
	go func() { // it ends with the process, or the terminal
		key := make([]byte, 1)
		for {
			n, err := e.Stdin.Read(key)
			if n == 1 && strings.ContainsRune("qQ\x03\x04", rune(key[0])) {
				end()
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return restore
}

// watch draws until q or Ctrl-C: after each request to the server, and when the size of the terminal changes.
func (c *Top) watch(ctx context.Context, e *env.Env, t *topView) error {
	looks, sizes := time.NewTicker(time.Duration(c.Every)*time.Second), time.NewTicker(resized)
	defer looks.Stop()
	defer sizes.Stop()
	var columns, rows int
	for again := true; ; {
		if w, h := e.Columns(e.Stdout), e.Rows(e.Stdout); again || w != columns || h != rows {
			columns, rows, again = w, h, false
			if err := draw(e.Stdout, t.lines(columns, rows)); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
			now, err := c.look(ctx, e)
			if err == nil && t.town != nil {
				err = c.meet(ctx, e, t)
			}
			if ctx.Err() != nil {
				return nil
			}
			t.took(now, err)
			again = true
		case <-sizes.C:
		}
	}
}

// draw fills the screen from its top: nothing flickers.
func draw(w io.Writer, lines []string) error {
	text := home + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// once prints what happened in one interval.
func (c *Top) once(ctx context.Context, e *env.Env, t *topView) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(c.Every) * time.Second):
	}
	now, err := c.look(ctx, e)
	if err != nil {
		return err
	}
	t.took(now, nil)
	_, err = fmt.Fprintln(e.Stdout, strings.Join(t.lines(e.Columns(e.Stdout), 0), "\n"))
	return err
}

// meet asks the server for its cluster. Members that it told of stay where it does not answer.
func (c *Top) meet(ctx context.Context, e *env.Env, t *topView) error {
	town, err := c.town(ctx, e)
	if err == nil {
		t.town = town
	}
	return err
}

// look asks the server for its state.
func (c *Top) look(ctx context.Context, e *env.Env) (*server.Inside, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := c.get(ctx, e, "/debug/actors")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var about server.Inside
	if err := json.NewDecoder(body).Decode(&about); err != nil {
		return nil, fmt.Errorf("the server at %s tells what is no account of it: %w: it may be an older sluice", c.Addr, err)
	}
	return &about, nil
}
