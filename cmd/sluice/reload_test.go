//go:build unix

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/mini"
)

// reloadedRun in the environment makes the test below the process that it sends signals: a command line, parted by line
// breaks.
const reloadedRun = "SLUICE_TEST_RELOADED_RUN"

// TestReload: SIGHUP has a server read keys and lists of models again. An answer that is under way goes on, and what
// cannot be read stays as it was.
func TestReload(t *testing.T) {
	if line := os.Getenv(reloadedRun); line != "" {
		e := env.Process()
		e.Args = strings.Split(line, "\n")
		os.Exit(run(e))
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	keys := file("keys", "one\n")
	file("a.gguf", string(mini.GGUF))
	c := exec.Command(os.Args[0], "-test.run", "^TestReload$")
	c.Env = append(os.Environ(), reloadedRun+"=serve\n--addr\n127.0.0.1:0\n--ctx\n512\n--models\n"+dir+"\n--api-key-file\n"+keys)
	stderr := &waitedBuffer{}
	c.Stderr = stderr
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP) // else a process whose parent ignores it, as under nohup, would ignore it, too
	require.NoError(t, c.Start())
	signal.Stop(handled)
	ended := make(chan error, 1)
	t.Cleanup(func() {
		c.Process.Kill()
		<-ended
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	go func() { ended <- c.Wait(); close(ended) }()
	require.NoError(t, err, "%s", stderr)
	url, names, _ := strings.Cut(strings.TrimSpace(line), " serves ")
	require.Equal(t, "a", names)
	hangUp := func(want string) {
		require.NoError(t, c.Process.Signal(syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Contains(stderr.String(), want) }, patient, 5*time.Millisecond,
			"want %s in %s", want, stderr)
	}
	ask := func(key, path, body string) (*http.Response, error) {
		r, err := http.NewRequest(http.MethodGet, url+path, nil)
		if body != "" {
			r, err = http.NewRequest(http.MethodPost, url+path, strings.NewReader(body))
		}
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		return http.DefaultClient.Do(r)
	}
	listed := func(key string) (int, string) {
		r, err := ask(key, "/v1/models", "")
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(text)
	}

	running, err := ask("one", "/v1/completions", `{"model": "a", "prompt": "One", "stream": true, "max_tokens": 400, "ignore_eos": true}`)
	require.NoError(t, err)
	defer running.Body.Close()
	require.Equal(t, http.StatusOK, running.StatusCode)
	file("keys", "two\nthree\n")
	file("b.gguf", string(mini.GGUF))
	hangUp("sluice: read again: keys: 2 new, 1 gone; models: new b\n")
	status, _ := listed("one")
	require.Equal(t, http.StatusUnauthorized, status)
	status, text := listed("two")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"id":"b"`)

	file("keys", "# none\n")
	require.NoError(t, os.Remove(filepath.Join(dir, "a.gguf")))
	file("b.gguf", string(mini.GGUF)+"\x00")
	hangUp("sluice: read again: the keys stay as they are; models: gone a; changed b\n")
	require.Contains(t, stderr.String(), "keys holds no key")
	status, text = listed("two")
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, text, `"id":"a"`)
	whole, err := io.ReadAll(running.Body)
	require.NoError(t, err)
	require.Contains(t, string(whole), "[DONE]", "the answer under way has gone on")

	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-ended, "%s", stderr)
}
