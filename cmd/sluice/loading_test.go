package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// What a command has to say stands at the beginning of a line, from which the bar has gone.
func TestBarIsGone(t *testing.T) {
	f, _ := draft(t)
	dir := t.TempDir()
	model, stopped, shape := filepath.Join(dir, "q.gguf"), filepath.Join(dir, "p.gguf"), filepath.Join(dir, "s.gguf")
	folder := filepath.Join(dir, "f.gguf")
	for _, c := range []struct {
		args []string
		stop bool
		want string
	}{
		{[]string{"quantize", "-t", "1", f.Name, model, "Q8_0"}, false, "\r" + model + ": Q8_0"},
		{[]string{"quantize", "-t", "1", f.Name, stopped, "Q8_0"}, true, "\r" + stopped + ".partial holds"},
		{[]string{"convert", "--type", "F32", draftFolder(t), "-o", folder}, false, "\r" + folder + ": F32"},
		{smallSynth(shape), false, "\r" + shape + ": 24.1 M"},
	} {
		e, screen := envtest.NewEnv("", c.args...), new(bytes.Buffer)
		e.Stdout, e.Stderr, e.IsTerminal = screen, screen, func(any) bool { return true }
		var stop context.CancelFunc
		e.Interruptible = func(parent context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(parent)
			stop = cancel
			return ctx, cancel
		}
		looks, now := 0, e.Now()
		e.Now = func() time.Time { // a second later each time: long enough for a bar, which is the third to look
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
