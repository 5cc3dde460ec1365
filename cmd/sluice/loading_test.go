package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

// What a command has to say stands at the beginning of a line, from which the bar has gone.
func TestBarIsGone(t *testing.T) {
	f, _ := draft(t)
	dir := t.TempDir()
	model, stopped, shape := filepath.Join(dir, "q.gguf"), filepath.Join(dir, "p.gguf"), filepath.Join(dir, "s.gguf")
	for _, c := range []struct {
		args []string
		stop bool
		want string
	}{
		{[]string{"quantize", "-t", "1", f.Name, model, "Q8_0"}, false, "\r" + model + ": Q8_0"},
		{[]string{"quantize", "-t", "1", f.Name, stopped, "Q8_0"}, true, "\r" + stopped + ".partial holds"},
		{smallSynth(shape), false, "\r" + shape + ": 24.1 M"},
	} {
		e, screen := testEnv("", c.args...), new(bytes.Buffer)
		e.stdout, e.stderr, e.isTerminal = screen, screen, func(any) bool { return true }
		var stop context.CancelFunc
		e.interruptible = func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(parent)
			stop = cancel
			return ctx, cancel
		}
		looks, now := 0, e.now()
		e.now = func() time.Time { // a second later each time: long enough for a bar, which is the third to look
			if looks++; looks == 3 && c.stop {
				stop()
			}
			now = now.Add(time.Second)
			return now
		}
		run(e)
		require.Contains(t, screen.String(), "writing ", "a bar")
		require.Contains(t, screen.String(), c.want)
	}
}

// row is one line of a screen, which refuses what a line cannot hold or a plain terminal would show as rubbish.
type row struct {
	t     *testing.T
	cells []rune
	at    int
}

func (r *row) Write(text []byte) (int, error) {
	for _, c := range string(text) {
		switch {
		case c == '\r':
			r.at = 0
			continue
		case c < ' ':
			require.Failf(r.t, "control character", "%q", text)
		}
		wide := 1
		if unicode.Is(unicode.Han, c) {
			wide = 2
		}
		require.Less(r.t, r.at+wide, len(r.cells)+1, "%q is too long for %d columns", text, len(r.cells))
		for range wide {
			r.cells[r.at] = c
			r.at++
		}
	}
	return len(text), nil
}

// A bar fits screens of every width, says first what matters most, needs no escape sequences, and is gone at the end.
func TestBarFits(t *testing.T) {
	long := "loading " + strings.Repeat("/srv/models", 12) + "/llama-3.1-8b-Q4_K_M.gguf"
	for _, what := range []string{"measuring", "loading m.gguf", long, "loading /模型/" + strings.Repeat("羊驼", 50)} {
		for width := 2; width < 200; width++ {
			screen := &row{t: t, cells: []rune(strings.Repeat(" ", width))}
			e, now := testEnv(""), time.Time{}
			e.stderr, e.columns = screen, func(any) int { return width }
			e.now = func() time.Time { return now }
			bar := &loadingBar{e: e, what: what, began: now}
			for done := int64(0); done < 10; done++ {
				now = now.Add(time.Second)
				bar.show(done<<30, 10<<30)
				shown := string(screen.cells)
				if width > 4 {
					require.Contains(t, shown, fmt.Sprintf(" %d%%", 10*done), "%d columns", width)
				}
				if width > 64 {
					require.Contains(t, shown, what[len(what)-6:]) // the end of a path is the file
				}
			}
			bar.show(10<<30, 10<<30)
			require.Empty(t, strings.TrimSpace(string(screen.cells)), "%d columns", width)
			require.Zero(t, screen.at)
		}
	}
}

// A line that becomes shorter leaves nothing of what it was; one that did not change is not written again.
func TestStatusLine(t *testing.T) {
	var line statusLine
	var screen bytes.Buffer
	for _, text := range []string{"waiting for llama-bench", "run 1", "run 1", "run 2, which has more to say", "done"} {
		line.show(&screen, text, 20)
	}
	line.clear()
	line.clear()
	require.Equal(t, "\rwaiting for …-bench"+"\rrun 1"+strings.Repeat(" ", 14)+"\rrun 2, which…to say"+
		"\rdone"+strings.Repeat(" ", 15)+"\r    \r", screen.String())
}

func TestBarText(t *testing.T) {
	for _, c := range []struct {
		what  string
		width int
		want  string
	}{
		{"measuring", 120, "measuring 40% ▕████████████░░░░░░░░░░░░░░░░░░▏ 2 of 5, 12s left"},
		{"measuring", 60, "measuring 40% ▕██████████░░░░░░░░░░░░░░░░▏ 2 of 5, 12s left"},
		{"measuring", 40, "measuring 40% 2 of 5, 12s left"},
		{"measuring", 30, "measuring 40% ▕█████░░░░░░░░▏"},
		{"measuring", 10, "meas… 40%"},
		{"loading m.gguf", 80, "loading m.gguf 40% ▕███████████░░░░░░░░░░░░░░░░░░▏ 2.0 GiB of 5.0 GiB, 12s left"},
		{"loading /data/somebody/models/llama-3.1-8b-Q4_K_M.gguf", 80,
			"loading /dat…y/models/llama-3.1-8b-Q4_K_M.gguf 40% 2.0 GiB of 5.0 GiB, 12s left"},
		{"loading /data/somebody/models/llama-3.1-8b-Q4_K_M.gguf", 40, "loading /dat…ama-3.1-8b-Q4_K_M.gguf 40%"},
	} {
		bar := &loadingBar{what: c.what, count: c.what == "measuring"}
		done, total := int64(2<<30), int64(5<<30)
		if bar.count {
			done, total = 2, 5
		}
		require.Equal(t, c.want, bar.text(done, total, 8*time.Second, c.width))
	}
}

// NO_COLOR leaves no escape sequence in the log nor in answers. TestBarFits shows that the bar never has one.
func TestNoColor(t *testing.T) {
	for value, coloured := range map[string]bool{"": true, "1": false, "0": false} {
		e, screen := testEnv(""), new(bytes.Buffer)
		e.stdout, e.stderr, e.isTerminal = screen, screen, func(any) bool { return true }
		e.lookup = func(name string) (string, bool) {
			return map[string]string{"TERM": "xterm-256color", "NO_COLOR": value}[name], true
		}
		flags := computeFlags{Log: "info"}
		log := flags.logger(e)
		log.Info().Str("file", "m.gguf").Msg("loaded")
		require.Equal(t, coloured, ansi(e, screen))
		require.Equal(t, coloured, strings.Contains(screen.String(), "\x1b"), "NO_COLOR=%q: %q", value, screen.String())
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"short\nlines", 80, "short\nlines"},
		{"one two three four", 10, "one two\nthree\nfour"},
		{"name      what it does at length", 24, "name      what it does\n          at length"},
		{"/set [NAME VALUE]   show how tokens are chosen", 30, "/set [NAME VALUE]\n    show how tokens are\n    chosen"},
		{"a-word-that-is-longer-than-the-screen x", 10, "a-word-that-is-longer-than-the-screen\nx"},
		{"    indented text that goes on", 16, "    indented\n    text that\n    goes on"},
	} {
		require.Equal(t, c.want, wrapped(c.text, c.width))
	}
}
