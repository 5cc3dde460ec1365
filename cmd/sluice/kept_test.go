//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// keptRun in the environment makes the test below a server that can be killed: a command line, parted by line breaks.
const keptRun = "SLUICE_TEST_KEPT_RUN"

// startKept starts a server of the embedded model, of another process. It is killed at the end.
func startKept(t *testing.T, flags ...string) (url string, c *exec.Cmd) {
	url, c, _ = startApart(t, flags...)
	return url, c
}

// startApart is startKept; it also returns what the server writes to its standard error.
func startApart(t *testing.T, flags ...string) (url string, c *exec.Cmd, stderr *waitedBuffer) {
	return startOn(t, "", flags...)
}

// startOn is startApart on a machine, which is a network namespace; "": this one.
func startOn(t *testing.T, machine string, flags ...string) (url string, c *exec.Cmd, stderr *waitedBuffer) {
	words := []string{os.Args[0], "-test.run", "^TestKilledServerFindsPrompts$", "-test.timeout", "0"}
	if machine != "" {
		words = append([]string{"ip", "netns", "exec", machine}, words...) // it becomes the program
	}
	c = exec.Command(words[0], words[1:]...)
	line := append([]string{"serve", "--addr", "127.0.0.1:0", "--device", "cpu", "--ctx", "4096", "--api-key", "k",
		"--api-key", "other"}, flags...)
	c.Env = append(os.Environ(), keptRun+"="+strings.Join(line, "\n"))
	stderr = &waitedBuffer{}
	c.Stderr = stderr
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { kill(c, syscall.SIGKILL) })
	first, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", stderr)
	url, _, _ = strings.Cut(first, " ")
	return url, c, stderr
}

func kill(c *exec.Cmd, signal syscall.Signal) {
	if c.ProcessState == nil {
		_ = c.Process.Signal(signal) // it may have ended
		_ = c.Wait()
	}
}

// kept is what a test reads of an answer.
type kept struct {
	Choices []struct{ Message struct{ Content string } }
	Usage   struct {
		Prompt int `json:"prompt_tokens"`
		Of     struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func askKept(t *testing.T, url, key, text string) (a kept) {
	body, err := json.Marshal(map[string]any{"max_tokens": 12, "temperature": 0, "seed": 1, "logprobs": false,
		"messages": []any{map[string]any{"role": "user", "content": text}}})
	require.NoError(t, err)
	r, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(string(body)))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&a))
	return a
}

// A server that was killed, or told to end, leaves what it has read to the next one: that does not compute it again,
// and its answer is the same. Who has another key finds nothing.
func TestKilledServerFindsPrompts(t *testing.T) {
	if line := os.Getenv(keptRun); line != "" {
		e := env.Process()
		e.Args = strings.Split(line, "\n")
		os.Exit(run(e))
	}
	if testing.Short() {
		t.Skip("it reads a prompt of 2,400 tokens twice")
	}
	state := t.TempDir()
	var words strings.Builder
	for i := range 500 {
		fmt.Fprintf(&words, "%d ", i*7919%10007)
	}
	url, server := startKept(t, "--state", state)
	first := askKept(t, url, "k", words.String())
	require.Greater(t, first.Usage.Prompt, 2000)
	require.Zero(t, first.Usage.Of.Cached)
	whole := (first.Usage.Prompt - 1) / 64
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(state, "kv", "*", "*-0"))
		return err == nil && len(files) >= whole
	}, patient, 10*time.Millisecond)
	kill(server, syscall.SIGKILL)

	url, server = startKept(t, "--state", state)
	again := askKept(t, url, "k", words.String())
	require.Equal(t, whole*64, again.Usage.Of.Cached)
	require.Equal(t, first.Choices, again.Choices)
	require.Zero(t, askKept(t, url, "other", words.String()[:400]).Usage.Of.Cached)
	kill(server, syscall.SIGTERM)
	require.Zero(t, server.ProcessState.ExitCode())

	url, _ = startKept(t, "--kv-disk", filepath.Join(state, "kv")+":1M", "--state", t.TempDir())
	askKept(t, url, "k", words.String()[:400])
	files, err := filepath.Glob(filepath.Join(state, "kv", "*", "*"))
	require.NoError(t, err)
	require.Less(t, len(files), 4, "1M holds two blocks")
}

// TestSavedSlotOutlivesEverything: a saved slot is restored after kill -9, though the folder of blocks is gone.
func TestSavedSlotOutlivesEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two servers")
	}
	state, text := t.TempDir(), strings.Repeat("one two three ", 80)
	slot := func(url, action string) (status int, body string) {
		r, err := http.NewRequest(http.MethodPost, url+"/slots/0?action="+action, strings.NewReader(`{"filename":"x"}`))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer k")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		all, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(all)
	}
	url, server := startKept(t, "--state", state)
	first := askKept(t, url, "k", text)
	status, body := slot(url, "save")
	require.Equal(t, http.StatusOK, status, body)
	kill(server, syscall.SIGKILL)
	require.NoError(t, os.RemoveAll(filepath.Join(state, "kv")))

	url, _ = startKept(t, "--state", state)
	status, body = slot(url, "restore")
	require.Equal(t, http.StatusOK, status, body)
	again := askKept(t, url, "k", text)
	require.Equal(t, first.Choices, again.Choices)
	require.Equal(t, (again.Usage.Prompt-1)/64*64, again.Usage.Of.Cached)
	require.Zero(t, askKept(t, url, "other", text).Usage.Of.Cached)
}

// TestKilledServerLeavesItsRecord: what was recorded until a server was killed can be replayed.
func TestKilledServerLeavesItsRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "killed.trace")
	url, server := startKept(t, "--record", path)
	askKept(t, url, "k", "12 + 30")
	read := func() (ends int) {
		o := sluice("", "replay", path, "--virtual")
		require.Equal(t, exitDone, o.code, o.stderr)
		_, _, _, _, ends = tapeOf(t, path)
		return ends
	}
	require.Eventually(t, func() bool { return read() == 1 }, patient, 10*time.Millisecond, "it waits for the next")
	askKept(t, url, "k", "12 + 31")
	require.Eventually(t, func() bool { return read() == 2 }, patient, 10*time.Millisecond)
	kill(server, syscall.SIGKILL)
	require.Equal(t, 2, read())
}

// What a server with a key keeps comes back by that key; to a server with another one, or with none, it is not there.
func TestKeptUnderAKey(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts four servers")
	}
	state, text := t.TempDir(), strings.Repeat("The sea is a secret. ", 40)
	cached := func(key string) int {
		t.Setenv(compute.StateKeyName, key)
		url, server := startKept(t, "--state", state)
		n := askKept(t, url, "k", text).Usage.Of.Cached
		kill(server, syscall.SIGTERM)
		return n
	}
	own := strings.Repeat("5e", 32)
	require.Zero(t, cached(own))
	require.Zero(t, cached(strings.Repeat("5f", 32)))
	require.Zero(t, cached(""))
	require.Positive(t, cached(own))
	wrong := exec.Command(os.Args[0], "-test.run", "^TestKilledServerFindsPrompts$")
	wrong.Env = append(os.Environ(), keptRun+"=serve\n--state\n"+state, compute.StateKeyName+"=hunter2")
	out, err := wrong.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "SLUICE_STATE_KEY: 7 characters are no key of 32 bytes")
	require.NotContains(t, string(out), "hunter2")
}
