package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTraceOfRun: the trace of a run says what the device did, in a text and as data.
func TestTraceOfRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	o := sluice("", "run", "-n", "5", "--ignore-eos", "--trace", path, "What is the capital of France?")
	require.Zero(t, o.code, o.stderr)
	text := sluice("", "trace", "stalls", path)
	require.Zero(t, text.code, text.stderr)
	require.Contains(t, text.stdout, "house/device/compute: ")
	require.Contains(t, text.stdout, "5 steps")
	trace, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text.stdout, sluice(string(trace), "trace", "stalls", "-").stdout, "from standard input")
	data := sluice("", "trace", "stalls", path, "--json")
	var got struct {
		Devices []struct {
			Explained float64
			Kinds     []struct{ Steps int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(data.stdout), &got), data.stdout)
	require.Len(t, got.Devices, 1)
	require.GreaterOrEqual(t, got.Devices[0].Explained, 0.99)
	require.Equal(t, 1, got.Devices[0].Kinds[0].Steps)
	require.Equal(t, 4, got.Devices[0].Kinds[1].Steps)
}

// TestTraceOfServer records what a server does while it is asked.
func TestTraceOfServer(t *testing.T) {
	s := launch(t, "--api-key", "secret")
	addr := s.url[len("http://"):]
	path := filepath.Join(t.TempDir(), "trace.json")
	var o outcome
	for seconds := 1; ; seconds *= 2 { // of a busy machine, the question may fall behind or before a second's trace
		asked := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(seconds) * 300 * time.Millisecond)
			request, _ := http.NewRequest(http.MethodPost, s.url+"/v1/completions", strings.NewReader(`{"prompt":"one two","max_tokens":4}`))
			request.Header.Set("Authorization", "Bearer secret")
			answer, err := http.DefaultClient.Do(request)
			if err == nil {
				err = answer.Body.Close()
			}
			asked <- err
		}()
		o = sluice("", "trace", "-o", path, "--force", "--seconds", fmt.Sprint(seconds), "--addr", addr, "--api-key", "secret")
		require.Zero(t, o.code, o.stderr)
		require.NoError(t, <-asked)
		http.DefaultClient.CloseIdleConnections()
		o = sluice("", "trace", "stalls", path)
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stdout, "no work")
		if strings.Contains(o.stdout, "prefill          1") {
			break
		}
		require.Less(t, seconds, 16, "the prompt is not in it: %s", o.stdout)
	}

	o = sluice("", "trace", "-o", path, "--addr", addr)
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "is there already")
	o = sluice("", "trace", "-o", path, "--force", "--addr", addr)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "answers 401 to GET /debug/trace?seconds=5: the API key is missing")
	kept, err := os.Stat(path)
	require.NoError(t, err)
	require.Positive(t, kept.Size(), "a refusal leaves the file as it was")
}

func TestTraceFaults(t *testing.T) {
	dir := t.TempDir()
	o := sluice("", "trace", "stalls", filepath.Join(dir, "none"))
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "none: no such file")
	empty := filepath.Join(dir, "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte(`{"traceEvents":[]}`), 0o600))
	o = sluice("", "trace", "stalls", empty)
	require.Contains(t, o.stderr, "no device did anything in this trace")
	o = sluice("", "trace", "-o", dir)
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "is a folder")
	o = sluice("", "trace", "-o", empty, "--force", "--addr", "127.0.0.1:1")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "start one with sluice serve, or name another with --addr")
	o = sluice("", "run", "--trace", dir, "hello")
	require.Equal(t, exitUsage, o.code)
}

// TestFullDisk: that nothing more can be written is said at once, of the file that was named, and fails the command.
func TestFullDisk(t *testing.T) {
	for _, flag := range []string{"--record", "--trace"} {
		o := sluice("", "run", flag, "/dev/full", "12 + 30")
		require.Equal(t, exitFailed, o.code, flag)
		require.Regexp(t, `^sluice: /dev/full: no space left on device: nothing more is written there\n`+
			`sluice: (?s:.*)/dev/full: no space left on device\n$`, o.stderr, flag)
	}
}
