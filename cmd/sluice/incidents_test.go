package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cpu/kernels"
)

// others are requests that a test sends, each a few times.
var others = []string{
	`{"temperature":0}`,
	`{"temperature":1.2,"top_p":0.9,"min_p":0.02,"repeat_penalty":1.2}`,
	`{"temperature":1.5,"logprobs":true,"top_logprobs":3,"logit_bias":{"300":-100,"301":2}}`,
	`{"temperature":1,"n":2}`,
	`{"temperature":1,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object",
		"properties":{"city":{"type":"string","maxLength":9},"n":{"type":"integer"}},"required":["city","n"],
		"additionalProperties":false}}}}`,
	`{"temperature":1,"response_format":{"type":"json_object"}}`,
	`{"temperature":1,"mirostat":2,"stop":["a"]}`,
	`{"temperature":1,"dry_multiplier":1,"xtc_probability":0.5,"frequency_penalty":0.4}`,
	`{"temperature":1,"tool_choice":"required","tools":[{"type":"function","function":{"name":"look","parameters":
		{"type":"object","properties":{"at":{"enum":["sea","sky"]}},"required":["at"]}}}]}`,
	`{"temperature":0.9,"stream":true}`,
}

// mixedBody is the i-th of many requests.
func mixedBody(t *testing.T, i int) []byte {
	body := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(others[i%len(others)]), &body))
	body["seed"], body["max_tokens"] = i, 6+i%13
	text := fmt.Sprintf("What is %d + %d?", i*7%83, i*13%59)
	if i%4 == 0 {
		text = strings.Repeat("The sea is wide. ", 1+i%17) + text
	}
	body["messages"] = []any{map[string]any{"role": "user", "content": text}}
	all, err := json.Marshal(body)
	require.NoError(t, err)
	return all
}

// send sends a request, and reads its answer; every ninth hangs up first.
func send(t *testing.T, url string, i int) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if i%9 == 8 {
		time.AfterFunc(time.Duration(i%50)*time.Millisecond, cancel)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(mixedBody(t, i)))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+[]string{"k", "other"}[i%2])
	answer, err := http.DefaultClient.Do(r)
	if err != nil && i%9 == 8 {
		return nil
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("request %d: %s: %s", i, answer.Status, text)
	}
	if i%9 == 8 {
		return nil
	}
	return err
}

// sendAll sends so many requests, some at once.
func sendAll(t *testing.T, url string, n, together int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				if err := send(t, url, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// slower is a set of kernels that is not the one that is used here by itself.
func slower(t *testing.T) string {
	all := kernels.Sets()
	if len(all) < 3 {
		return all[0].Name
	}
	t.Logf("recorded by %s, answered again by %s", all[len(all)-1].Name, all[len(all)-2].Name)
	return all[len(all)-2].Name
}

// inherits runs the program with the environment of the test.
func inherits(args ...string) outcome {
	e := envtest.NewEnv("", args...)
	e.Lookup = os.LookupEnv
	code := run(e)
	return outcome{code, fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
}

// replayed is what --check prints with --json.
type replayed struct {
	Requests, Tokens int
	LeftOut          int                    `json:"left_out"`
	First            *struct{ Request int } `json:"first_difference"`
}

func replayCheck(t *testing.T, args ...string) (r replayed) {
	o := inherits(append([]string{"replay", "--check", "--json", "--ctx", "4096"}, args...)...)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Empty(t, o.stderr)
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r))
	require.Nil(t, r.First)
	return r
}

// TestReplayOfMixedRequests: requests of all kinds, recorded while a server had many at once, get the same ids on
// another instruction set. make nightly has 10,000 of them (SLUICE_REPLAYED).
func TestReplayOfMixedRequests(t *testing.T) {
	n := 40
	if testing.Short() {
		t.Skip("it starts a server")
	}
	if more, err := strconv.Atoi(os.Getenv("SLUICE_REPLAYED")); err == nil {
		n = more
	}
	path := filepath.Join(t.TempDir(), "mixed.trace")
	url, server := startKept(t, "--record", path, "--record-ids-only")
	sendAll(t, url, n, 40)
	kill(server, syscall.SIGTERM)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "The sea is wide.")
	t.Setenv("SLUICE_CPU", slower(t))
	r := replayCheck(t, path)
	gone := 2 * (n/9 + 1) // those that hung up, some with two answers, may have no token, or not have come
	require.GreaterOrEqual(t, r.Requests, n+n/10-gone)
	require.LessOrEqual(t, r.LeftOut, gone)
	t.Logf("%d requests, %d tokens, %d left out", r.Requests, r.Tokens, r.LeftOut)
}

// TestIncidents: what a server with --state did can be answered again from its folder, all of it but the last second
// after kill -9, and of it a window; by the key alone, if there is one.
func TestIncidents(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts three servers")
	}
	state := t.TempDir()
	folder := filepath.Join(state, "incidents")
	url, server := startKept(t, "--state", state, "--incidents", "2M")
	sendAll(t, url, 7, 7)
	between := time.Now()
	sendAll(t, url, 7, 7)
	require.Eventually(t, func() bool { return replayCheck(t, state).Requests == 16 }, patient, 100*time.Millisecond)
	kill(server, syscall.SIGKILL)
	files, err := filepath.Glob(filepath.Join(folder, "*.trace"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NotContains(t, string(text), "The sea is wide.")

	t.Setenv(compute.StateKeyName, strings.Repeat("5e", 32))
	url, server = startKept(t, "--state", state)
	sendAll(t, url, 3, 1)
	kill(server, syscall.SIGTERM)
	require.Equal(t, 16+4, replayCheck(t, state).Requests)
	require.Equal(t, 8, replayCheck(t, state, "--to", between.Format(time.RFC3339Nano)).Requests)
	require.Equal(t, 12, replayCheck(t, folder, "--from", between.Format(time.RFC3339Nano)).Requests)
	require.Equal(t, 3, replayCheck(t, folder, "--from", "2", "--to", "4").Requests)
	require.Equal(t, 20, replayCheck(t, folder, "--from", "1h").Requests)
	require.Equal(t, 1, replayCheck(t, folder, "--from", "19").Requests)
	o := inherits("why", state, "19", "2", "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var of struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &of))
	require.NotEmpty(t, of.ID)
	require.Equal(t, 2, replayCheck(t, state, "--from", of.ID, "--to", of.ID).Requests, "it has two answers")
	require.Contains(t, inherits("replay", state, "--check", "--to", "nobody").stderr, "no request of the trace has this id")

	t.Setenv(compute.StateKeyName, "")
	o = inherits("replay", state, "--check")
	require.Contains(t, o.stderr, "it is encrypted, and there is no key")
	require.Contains(t, o.stdout, "16 requests")

	_, server = startKept(t, "--state", t.TempDir(), "--incidents", "off")
	kill(server, syscall.SIGTERM)
	require.Equal(t, exitUsage, sluice("", "serve", "--addr", "127.0.0.1:0", "--incidents", "much").code)
}
