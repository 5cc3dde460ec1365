package compute

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

func TestPeakMemory(t *testing.T) {
	root := fstest.MapFS{"proc/self/status": {Data: []byte("VmPeak:\t  999 kB\nVmHWM:\t    2048 kB\n")}}
	require.EqualValues(t, 2<<20, PeakMemory(root))
	require.Zero(t, PeakMemory(fstest.MapFS{}))
}

// NO_COLOR leaves no escape sequence in the log nor in answers. TestBarFits shows that the bar never has one.
func TestNoColor(t *testing.T) {
	for value, coloured := range map[string]bool{"": true, "1": false, "0": false} {
		e, screen := envtest.NewEnv(""), new(bytes.Buffer)
		e.Stdout, e.Stderr, e.IsTerminal = screen, screen, func(any) bool { return true }
		e.Lookup = func(name string) (string, bool) {
			return map[string]string{"TERM": "xterm-256color", "NO_COLOR": value}[name], true
		}
		flags := Flags{Log: "info"}
		log := flags.Logger(e)
		log.Info().Str("file", "m.gguf").Msg("loaded")
		require.Equal(t, coloured, e.Pane(screen).ANSI)
		require.Equal(t, coloured, strings.Contains(screen.String(), "\x1b"), "NO_COLOR=%q: %q", value, screen.String())
	}
}
