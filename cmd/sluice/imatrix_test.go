package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/imatrix"
)

// measured runs the command on the draft model with one set of kernels.
func measured(t *testing.T, kernels, threads string) (*imatrix.Matrix, string) {
	t.Helper()
	dir, out := testref.Dir(t), filepath.Join(t.TempDir(), "i.gguf")
	e := envtest.NewEnv("", "imatrix", "-m", filepath.Join(dir, "models", "draft-bf16.gguf"), "--kv", "f32", "-t", threads,
		"-f", filepath.Join(dir, "models", "heldout-go.txt"), "-o", out, "-c", "32", "--chunks", "2")
	if kernels != "" {
		e.Lookup = func(name string) (string, bool) {
			value, ok := map[string]string{"SLUICE_CPU": kernels}[name]
			return value, ok
		}
	}
	require.Zero(t, run(e), "%v", e.Stderr)
	m, err := imatrix.Read(out)
	require.NoError(t, err)
	return m, fmt.Sprint(e.Stdout)
}

// The sums are those of the oracle's activations, of all rows, and the same whoever adds them up.
func TestImatrix(t *testing.T) {
	m, said := measured(t, "", "1")
	require.Contains(t, said, "i.gguf: importance of the columns of 29 weights, by 2 chunks of 32 tokens\n")
	again, _ := measured(t, "", "3")
	require.Equal(t, m, again)
	want, _ := measured(t, "ref", "1")
	require.Equal(t, 2, m.Chunks)
	require.Equal(t, 32, m.ChunkSize)
	require.Len(t, m.Entries, len(want.Entries))
	for name, entry := range want.Entries {
		got := m.Entries[name]
		require.Equal(t, []float32{64}, got.Counts, name)
		require.Len(t, got.Squares, len(entry.Squares))
		for i, sum := range entry.Squares {
			require.InEpsilon(t, sum, got.Squares[i], 1e-3, "%s, column %d", name, i)
		}
	}
	require.Contains(t, m.Entries, "token_embd.weight", "the output of this model")
	require.Len(t, m.Entries["blk.2.ffn_down.weight"].Squares, 768)
}

// stoppingScreen presses Ctrl-C when it reads a word.
type stoppingScreen struct {
	text bytes.Buffer
	at   string
	stop func()
}

func (s *stoppingScreen) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(s.at)) {
		s.stop()
	}
	return s.text.Write(text)
}

// What was measured before Ctrl-C is kept.
func TestImatrixStopped(t *testing.T) {
	dir, out := testref.Dir(t), filepath.Join(t.TempDir(), "i.gguf")
	e := envtest.NewEnv("", "imatrix", "-m", filepath.Join(dir, "models", "draft-bf16.gguf"),
		"-f", filepath.Join(dir, "models", "heldout-go.txt"), "-o", out, "-c", "32", "--chunks", "1000")
	said, screen := new(bytes.Buffer), &stoppingScreen{at: "measuring"}
	e.Stdout, e.Stderr, e.IsTerminal = said, screen, func(any) bool { return true }
	e.Interruptible = func(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
		ctx, screen.stop = context.WithCancel(parent)
		return ctx, screen.stop
	}
	now := e.Now()
	e.Now = func() time.Time { // a second later each time: long enough for a bar
		now = now.Add(time.Second)
		return now
	}
	require.Equal(t, exitInterrupted, run(e))
	m, err := imatrix.Read(out)
	require.NoError(t, err)
	require.Positive(t, m.Chunks)
	require.Less(t, m.Chunks, 1000)
	require.Contains(t, said.String(), fmt.Sprintf("by %s of 32 tokens", env.Count(m.Chunks, "chunk")))
	require.Contains(t, screen.text.String(), "sluice: stopped")
}

// A long run saves what it has each minute, not only at its end.
func TestImatrixSaves(t *testing.T) {
	dir, out := testref.Dir(t), filepath.Join(t.TempDir(), "i.gguf")
	var chunks []int // in the file, whenever the bar is drawn
	e := envtest.NewEnv("", "imatrix", "-m", filepath.Join(dir, "models", "draft-bf16.gguf"),
		"-f", filepath.Join(dir, "models", "heldout-go.txt"), "-o", out, "-c", "32", "--chunks", "6")
	e.Stderr, e.IsTerminal = &stoppingScreen{at: "measuring", stop: func() {
		if m, err := imatrix.Read(out); err == nil {
			chunks = append(chunks, m.Chunks)
		}
	}}, func(any) bool { return true }
	now := e.Now()
	e.Now = func() time.Time {
		now = now.Add(time.Minute)
		return now
	}
	require.Zero(t, run(e))
	require.Subset(t, chunks, []int{1, 2, 3})
	m, err := imatrix.Read(out)
	require.NoError(t, err)
	require.Equal(t, 6, m.Chunks)
}

func TestImatrixUsage(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short.txt")
	require.NoError(t, os.WriteFile(short, []byte("Too little."), 0o666))
	out := filepath.Join(dir, "i.gguf")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-o", out}, exitUsage, "want --file=FILE, as in: sluice imatrix "},
		{[]string{"-f", short, "-o", out, "-c", "3"}, exitUsage, "-c is 3: want 4 to"},
		{[]string{"-f", short, "-o", out, "--ctx", "100"}, exitUsage,
			"--ctx is 100, but a chunk has 512 tokens (-c): want at least as many"},
		{[]string{"-f", short, "-o", out}, exitFailed, "short.txt: the text has 4 tokens: want at least 1024, two chunks"},
		{[]string{"-f", short + "x", "-o", out}, exitFailed, "no such file"},
		{[]string{"-f", short, "-o", short}, exitUsage, "short.txt is a file that is read: choose another name"},
		{[]string{"-f", short, "-o", dir}, exitUsage, "is a folder: name a file in it"},
		{[]string{"-f", short, "-o", filepath.Join(dir, "none", "i.gguf")}, exitFailed, "i.gguf: no such file or directory"},
	} {
		o := sluice("", append([]string{"imatrix"}, c.args...)...)
		require.Equal(t, c.code, o.code, c.args)
		require.Contains(t, o.stderr, c.want)
		require.NoFileExists(t, out)
	}
}
