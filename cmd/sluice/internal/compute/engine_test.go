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

// TestCacheFlags: --kv speaks for both, --kv-k and --kv-v for one each.
func TestCacheFlags(t *testing.T) {
	for _, c := range []struct {
		flags CacheFlags
		want  string
	}{
		{CacheFlags{KV: "f16"}, "f16"},
		{CacheFlags{KV: "q8_0"}, "q8"},
		{CacheFlags{KV: "f16", KVK: "q8"}, "q8/f16"},
		{CacheFlags{KV: "f16", KVV: "q8"}, "f16/q8"},
		{CacheFlags{KV: "f32", KVK: "q8", KVV: "q8_0"}, "q8"},
		{CacheFlags{KV: "f32", KVK: "f16", KVV: "q8"}, "f16/q8"},
	} {
		kv, note, err := c.flags.Formats(envtest.NewEnv(""), nil)
		require.NoError(t, err)
		require.Empty(t, note)
		require.Equal(t, c.want, kv.String())
	}
}
