package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func TestRunJSON(t *testing.T) {
	o := sluice("", "run", "--json", "-n", "4", "What is the capital of France?")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, 1, strings.Count(o.stdout, "\n"), "one line for a result")
	var a answer
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &a))
	require.Len(t, a.Tokens, 4)
	require.Equal(t, "The capital of Fr", a.Text)
	require.Equal(t, "length", string(a.Finish))
	require.Positive(t, a.PromptTokens)
}

func TestRunTakesIDsAsTheyAre(t *testing.T) {
	o := sluice("", "run", "--json", "-n", "1", "--tokens", "[523, 1544 304]")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, `"prompt_tokens":3`)

	o = sluice("a prompt that is not asked for", "run", "--tokens", "")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "the prompt has no tokens")
}

// TestCtrlCWhileReading: whoever waits for standard input must be able to give up, so the signal is not caught yet.
func TestCtrlCWhileReading(t *testing.T) {
	caught := false
	e := testEnv("", "run", "-n", "1")
	e.interruptible = func(ctx context.Context) (context.Context, context.CancelFunc) {
		caught = true
		return context.WithCancel(ctx)
	}
	e.stdin = readerFunc(func([]byte) (int, error) {
		require.False(t, caught)
		return 0, io.EOF
	})
	require.Equal(t, exitDone, run(e))
	require.True(t, caught)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestRunSaysWhatIsOdd(t *testing.T) {
	o := sluice("", "run", "-n", "1", "--ctx", "16385", "hello")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stderr, "trained for 16384 tokens")
	require.Empty(t, sluice("", "run", "-n", "1", "--ctx", "16384", "hello").stderr)

	path := filepath.Join(t.TempDir(), "vocabulary.gguf")
	var file bytes.Buffer
	m := &meta.Map{}
	m.Set("general.architecture", "llama")
	require.NoError(t, gguf.Write(&file, m, nil, nil))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	o = sluice("", "run", "-m", path, "hello")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, path+": it has no weights")
}

func TestLogitsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logits.f32")
	o := sluice("", "logits", "--tokens", "1,2,3", "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, whole, 3*8192*4)

	o = sluice("", "logits", "--tokens", "1,2,3", "--ctx", "2", "--force", "-o", path)
	require.Equal(t, exitFailed, o.code)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, whole, kept, "a request that is refused leaves the file")
}
