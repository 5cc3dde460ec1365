package main

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// TestTopOnce: without a terminal it prints one interval, and no escape sequence.
func TestTopOnce(t *testing.T) {
	s := launch(t)
	o := sluice("", "top", "--addr", s.url[len("http://"):])
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "house/device")
	require.Contains(t, o.stdout, "no work      1")
	require.NotContains(t, o.stdout, "\x1b")
	o = sluice("", "top", "--addr", "127.0.0.1:1")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "start one with sluice serve")
	require.Equal(t, exitUsage, sluice("", "top", "--every", "0").code)
}

// TestTopScreen: on a terminal it has a screen of its own, is drawn anew when that changes its size, and leaves the
// terminal as it was.
func TestTopScreen(t *testing.T) {
	s := launch(t)
	for _, plain := range []string{"", "1"} {
		e := envtest.NewEnv("", "top", "--addr", s.url[len("http://"):])
		screen, keys := &waitedBuffer{}, &keyboard{}
		stdin, typed := io.Pipe()
		defer typed.Close()
		e.Stdin = stdin
		var width atomic.Int64
		width.Store(80)
		e.Stdout, e.Interruptible = screen, keys.interruptible
		e.IsTerminal = func(any) bool { return true }
		e.Columns = func(any) int { return int(width.Load()) }
		e.Lookup = func(name string) (string, bool) {
			return map[string]string{"TERM": "xterm", "NO_COLOR": plain}[name], true
		}
		code := make(chan int, 1)
		go func() { code <- run(e) }()
		draws := func(n int) {
			require.Eventually(t, func() bool { return strings.Count(screen.String(), "\x1b[H") >= n },
				patient, time.Millisecond)
		}
		draws(1)
		width.Store(130)
		draws(2)
		if plain == "" {
			keys.ctrlC()
		} else {
			typed.Write([]byte("xq"))
		}
		require.Zero(t, <-code, "%s", e.Stderr)
		text := screen.String()
		require.True(t, strings.HasPrefix(text, "\x1b[?1049h\x1b[?25l\x1b[H"))
		require.True(t, strings.HasSuffix(text, "\x1b[?25h\x1b[?1049l"))
		require.Equal(t, plain == "", strings.Contains(text, env.Dim))
		require.Contains(t, text, "restarts", "at 130 columns")
	}
}
