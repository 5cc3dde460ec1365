package env

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

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
			now := time.Time{}
			e := &Env{Stderr: screen, Columns: func(any) int { return width }, Now: func() time.Time { return now }}
			e.IsTerminal = func(any) bool { return true }
			bar := e.Progress(what)
			for done := int64(0); done < 10; done++ {
				now = now.Add(time.Second)
				bar.Show(done<<30, 10<<30)
				shown := string(screen.cells)
				if width > 4 {
					require.Contains(t, shown, fmt.Sprintf(" %d%%", 10*done), "%d columns", width)
				}
				if width > 64 {
					require.Contains(t, shown, what[len(what)-6:]) // the end of a path is the file
				}
			}
			bar.Show(10<<30, 10<<30)
			require.Empty(t, strings.TrimSpace(string(screen.cells)), "%d columns", width)
			require.Zero(t, screen.at)
		}
	}
}

// A line that becomes shorter leaves nothing of what it was; one that did not change is not written again.
func TestStatusLine(t *testing.T) {
	var line StatusLine
	var screen bytes.Buffer
	for _, text := range []string{"waiting for llama-bench", "run 1", "run 1", "run 2, which has more to say", "done"} {
		line.Show(&screen, text, 20)
	}
	line.Clear()
	line.Clear()
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
		{"measuring", 30, "measuring 40% 2 of 5"},
		{"measuring", 10, "meas… 40%"},
		{"loading m.gguf", 100, "loading m.gguf 40% ▕████████████░░░░░░░░░░░░░░░░░░▏ 2.0 GiB of 5.0 GiB, 256.0 MiB/s, 12s left"},
		{"loading m.gguf", 80, "loading m.gguf 40% ▕██████░░░░░░░░░░▏ 2.0 GiB of 5.0 GiB, 256.0 MiB/s, 12s left"},
		{"loading m.gguf", 60, "loading m.gguf 40% ▕███░░░░░░▏ 2.0 GiB of 5.0 GiB, 12s left"},
		{"loading m.gguf", 40, "loading m.gguf 40% 256.0 MiB/s, 12s"},
		{"loading /data/somebody/models/llama-3.1-8b-Q4_K_M.gguf", 80,
			"loading /dat…a-3.1-8b-Q4_K_M.gguf 40% 2.0 GiB of 5.0 GiB, 256.0 MiB/s, 12s left"},
		{"loading /data/somebody/models/llama-3.1-8b-Q4_K_M.gguf", 40, "loading /dat…ama-3.1-8b-Q4_K_M.gguf 40%"},
		{"loading /data/somebody/models/llama-3.1-8b-Q4_K_M.gguf", 30, "loading /dat…-Q4_K_M.gguf 40%"},
	} {
		bar := &Bar{What: c.what, Count: c.what == "measuring"}
		done, total := int64(2<<30), int64(5<<30)
		if bar.Count {
			done, total = 2, 5
		}
		require.Equal(t, c.want, bar.text(done, total, 8*time.Second, c.width))
	}
}
