//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/testref"
)

// ends fails a test whose command hangs, which Ctrl-C would not end either.
func ends(t *testing.T, e *env.Env) (code int) {
	t.Helper()
	done := make(chan int, 1)
	go func() { done <- run(e) }()
	select {
	case code = <-done:
	case <-time.After(patient):
		require.Fail(t, "it hangs", "%v", e.Args)
	}
	return code
}

// A pipe, a device or a socket is no model: nobody waits for it.
func TestModelIsNoPipe(t *testing.T) {
	fifo, socket := filepath.Join(t.TempDir(), "model.gguf"), filepath.Join(t.TempDir(), "socket.gguf")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	ln, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer ln.Close()
	for _, args := range [][]string{
		{"run", "-m", fifo, "hello"}, {"inspect", fifo}, {"tokenize", "-m", fifo}, {"run", "-m", "/dev/zero", "hello"},
		{"quantize", fifo, "out.gguf", "Q8_0"}, {"run", "-m", socket, "hello"},
	} {
		e := envtest.NewEnv("x", args...)
		require.Equal(t, exitFailed, ends(t, e), args)
		require.Contains(t, fmt.Sprint(e.Stderr), "want a regular file", args)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// What has no end is not read without end.
func TestInputsAreBounded(t *testing.T) {
	for _, args := range [][]string{
		{"run"}, {"tokenize"}, {"detokenize"}, {"perplexity", "-f", "/dev/zero"}, {"perplexity", "-f", "-"},
		{"imatrix", "-f", "/dev/zero", "-o", filepath.Join(t.TempDir(), "i.gguf")},
		{"template", "--file", "/dev/zero", "--conversation", "-"},
		{"synth", "--config", "/dev/zero", "-o", filepath.Join(t.TempDir(), "m.gguf")},
	} {
		e := envtest.NewEnv("", args...)
		e.Stdin = endless{}
		require.Equal(t, exitFailed, ends(t, e), args)
		require.Contains(t, fmt.Sprint(e.Stderr), "which is the most that is read here", args)
	}
}

// No command replaces a file unasked, or half.
func TestNothingIsReplacedUnasked(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	draft := filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf")
	for _, args := range [][]string{
		{"logits", "--tokens", "1", "-o", out}, smallSynth(out),
		{"imatrix", "-f", "../../README.md", "-c", "4", "--chunks", "1", "-o", out},
		{"quantize", draft, out, "Q8_0"},
		{"bench", "-p", "1", "-n", "1", "-r", "1", "--svg", out},
	} {
		for _, c := range []struct {
			typed    string // at a terminal, if anything
			force    bool
			code     int
			says     string
			replaced bool
		}{
			{code: exitUsage, says: "out is there already: --force replaces it, or choose another name"},
			{typed: "\n", code: exitFailed, says: "is there already. Replace it? [y/N] "},
			{typed: "no\n", code: exitFailed, says: "out was not replaced"},
			{typed: "y\n", code: exitDone, replaced: true},
			{force: true, code: exitDone, replaced: true},
		} {
			require.NoError(t, os.WriteFile(out, []byte("theirs"), 0o600))
			e := envtest.NewEnv(c.typed, args...)
			if c.force {
				e.Args = append(e.Args, "--force")
			}
			e.IsTerminal = func(stream any) bool { return c.typed != "" && stream != e.Stdout }
			require.Equal(t, c.code, run(e), "%v %v: %v", args, c, e.Stderr)
			require.Contains(t, fmt.Sprint(e.Stderr), c.says)
			text, err := os.ReadFile(out)
			require.NoError(t, err)
			require.Equal(t, c.replaced, string(text) != "theirs", "%v %v", args, c)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 1, args)
		}
	}
}

// A command that fails before it has something to write leaves what was there.
func TestFailureReplacesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.WriteFile(out, []byte("theirs"), 0o600))
	for _, args := range [][]string{
		{"run", "hi", "--record", out}, {"run", "hi", "--trace", out}, {"serve", "--record", out}, {"serve", "--trace", out},
		{"bench", "--trace", out}, {"bench", "--svg", out}, {"logits", "--tokens", "1", "-o", out},
		{"imatrix", "-f", "../../README.md", "-o", out},
	} {
		o := sluice("", append(args, "--force", "-m", filepath.Join(t.TempDir(), "none.gguf"))...)
		require.Equal(t, exitFailed, o.code, args)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, "theirs", string(text), args)
	}
}

// Results go through pipes too.
func TestResultsThroughPipes(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	got := make(chan int)
	go func() {
		data, _ := io.ReadAll(r)
		got <- len(data)
	}()
	o := sluice("", "logits", "--tokens", "1,2", "-o", fmt.Sprintf("/dev/fd/%d", w.Fd()))
	require.NoError(t, w.Close())
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, 2*8192*4, <-got)
}

// A run that is killed, and cannot clean up, leaves nothing where it writes, nor anywhere else.
func TestKilledRunLeavesNothing(t *testing.T) {
	if line := os.Getenv(killedRun); line != "" { // before there are folders of the test's, which nobody would remove
		e := envtest.NewEnv("", strings.Split(line, "\n")...)
		require.Equal(t, exitDone, run(e), "%v", e.Stderr)
		return
	}
	dir := t.TempDir()
	if f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600); err != nil {
		t.Skipf("no unnamed files here: %v", err)
	} else {
		f.Close()
	}
	for _, line := range []string{
		"synth\n--shape\nllama-3.1-8b\n--quant\nF16\n-o\nm.gguf",
		"doctor\n--probe",
	} {
		killed := false
		for try := 0; try < 5 && !killed; try++ { // what takes seconds may be over before a busy machine looks
			c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
			c.Dir = dir
			c.Env = append(os.Environ(), killedRun+"="+line, "TMPDIR="+dir)
			require.NoError(t, c.Start())
			written := func() bool {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", c.Process.Pid))
				_, after, _ := strings.Cut(string(text), "wchar: ")
				number, _, _ := strings.Cut(after, "\n")
				return len(number) >= len("10000000") // ten megabytes
			}
			require.Eventually(t, written, patient, 10*time.Millisecond, line)
			require.NoError(t, c.Process.Kill())
			killed = c.Wait() != nil
		}
		require.True(t, killed, line)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, line)
	}
}
