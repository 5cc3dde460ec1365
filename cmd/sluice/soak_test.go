//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// soaked is a request that many clients send, again and again, and what it is answered when nobody else asks.
type soaked struct {
	path, body string
	status     int
	said       string // essence of the answer that it has alone
}

// soakedRequests are requests of every dialect, streamed and whole: with tools, forms, several choices, drawn by a
// seed, forgotten by the client, and faulty ones. Half of them begin alike, as conversations do.
func soakedRequests() (all []*soaked) {
	const messages = `"messages":[{"role":"system","content":"You answer briefly and never guess."},` +
		`{"role":"user","content":%q}]`
	const form = `{"type":"object","properties":{"city":{"enum":["Oslo","Lima"]},"days":{"type":"integer","minimum":1,` +
		`"maximum":3}},"required":["city","days"],"additionalProperties":false}`
	add := func(path, body string) {
		all = append(all, &soaked{path: path, body: `{"model":"demo",` + body, status: 200})
	}
	for _, q := range []string{"What is the capital of France?", "Tell me a short story about a fox.", "12 + 30"} {
		said := fmt.Sprintf(messages, q)
		for _, stream := range []string{`,"stream":true}`, `,"stream":false}`} {
			add("/v1/chat/completions", said+`,"temperature":0,"max_tokens":40`+stream)
			add("/v1/chat/completions", said+`,"temperature":1,"seed":5,"n":2,"max_tokens":24`+stream)
			add("/v1/completions", fmt.Sprintf(`"prompt":[%q,"Once"],"temperature":0,"max_tokens":30`, q)+stream)
			add("/v1/responses", fmt.Sprintf(`"input":%q,"temperature":0,"max_output_tokens":32`, q)+stream)
			add("/v1/messages", fmt.Sprintf(`"system":"You answer briefly.","messages":[{"role":"user","content":%q}],`, q)+
				`"temperature":0,"max_tokens":32`+stream)
			add("/api/chat", said+`,"options":{"temperature":0,"num_predict":32}`+stream)
			add("/api/generate", fmt.Sprintf(`"prompt":%q,"options":{"temperature":0.8,"seed":3,"num_predict":24}`, q)+stream)
			add("/completion", fmt.Sprintf(`"prompt":%q,"temperature":0,"n_predict":32`, q)+stream)
		}
	}
	said := fmt.Sprintf(messages, "What is the weather in Oslo?")
	add("/v1/chat/completions", said+`,"temperature":0,"max_tokens":80,"tool_choice":"required","tools":[{"type":`+
		`"function","function":{"name":"get_weather","description":"the weather of a city","parameters":`+form+`}}]}`)
	add("/v1/chat/completions", said+`,"temperature":0,"response_format":{"type":"json_schema","json_schema":{"name":"p",`+
		`"schema":`+form+`}}}`)
	add("/api/chat", said+`,"stream":false,"options":{"temperature":0},"format":`+form+`}`)
	add("/completion", `"prompt":"The sea","n_predict":24,"temperature":0,"grammar":"root ::= [a-z ]+"}`)
	add("/tokenize", `"content":"How many tokens are these?"}`)
	return append(all, &soaked{path: "/v1/embeddings", body: `{"model":"small","input":["one","two"]}`, status: 200},
		&soaked{path: "/api/embed", body: `{"model":"small","input":"three"}`, status: 200},
		&soaked{path: "/v1/chat/completions", body: `{"model":"demo","messages":7}`, status: 400},
		&soaked{path: "/api/chat", body: `{"model":"nobody","messages":[]}`, status: 404},
		&soaked{path: "/v1/messages", body: `{"model":"demo","max_tokens":`, status: 400})
}

// essential are the fields that hold what a model said, and why it ended.
var essential = []string{"text", "content", "response", "delta", "thinking", "reasoning_content", "arguments",
	"partial_json", "name", "finish_reason", "stop_reason", "done_reason", "embedding", "embeddings", "tokens"}

// essence is what an answer says, however it was cut into events: the pieces of each field, joined by choice.
func essence(answer []byte) (string, error) {
	fields := map[string]string{}
	for line := range bytes.Lines(answer) {
		line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !bytes.HasPrefix(line, []byte("{")) {
			continue // the name of an event, a comment, the end
		}
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			return "", fmt.Errorf("%w: %.200s", err, line)
		}
		if m := v.(map[string]any); m["error"] != nil || m["type"] == "error" {
			return "", fmt.Errorf("an error: %.200s", line)
		}
		gather(fields, "", "", v)
	}
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&out, "%s: %q\n", key, fields[key])
	}
	return out.String(), nil
}

// gather joins the texts and lists of numbers in v to fields, by name and choice.
func gather(fields map[string]string, choice, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if i, ok := v["index"].(float64); ok {
			choice += fmt.Sprint(i)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			gather(fields, choice, key, v[key])
		}
	case []any:
		for _, x := range v {
			gather(fields, choice, name, x)
		}
	case string:
		if slices.Contains(essential, name) {
			fields[choice+name] += v
		}
	case float64:
		if slices.Contains(essential, name) {
			fields[choice+name] += strconv.FormatFloat(v, 'g', -1, 64) + " "
		}
	}
}

// crowd is clients of a server in another process.
type crowd struct {
	url      string
	http     *http.Client
	answered atomic.Int64
	aborted  atomic.Int64
}

// ask sends a request with a key. With left > 0 the client goes away after so many bytes of the answer, which then
// is not judged.
func (c *crowd) ask(ctx context.Context, s *soaked, key string, left int64) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+s.path, strings.NewReader(s.body))
	if err != nil {
		return "", err
	}
	q.Header.Set("Authorization", "Bearer "+key)
	q.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(q)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if left > 0 {
		_, err := io.CopyN(io.Discard, bufio.NewReader(answer.Body), left)
		if err == nil || errors.Is(err, io.EOF) {
			return "", nil
		}
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != s.status {
		return "", fmt.Errorf("status %d, want %d: %.200s", answer.StatusCode, s.status, body)
	}
	if s.status != http.StatusOK {
		return "", nil
	}
	return essence(body)
}

// live is what one client does until ctx ends: it asks, waits for most answers, and leaves some.
func (c *crowd) live(ctx context.Context, t *testing.T, all []*soaked, client int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, uint64(client)))
	key := []string{"k", "other", "third"}[client%3]
	for ctx.Err() == nil {
		s := all[random.IntN(len(all))]
		if random.IntN(8) == 0 {
			if _, err := c.ask(ctx, unseen(random), key, 0); err != nil && ctx.Err() == nil {
				t.Errorf("a prompt of its own: %v", err)
			}
			continue
		}
		if random.IntN(6) == 0 {
			if _, err := c.ask(ctx, s, key, 1+random.Int64N(600)); err != nil && ctx.Err() == nil {
				t.Errorf("%s, left early: %v", s.path, err)
			}
			c.aborted.Add(1)
			continue
		}
		switch said, err := c.ask(ctx, s, key, 0); {
		case ctx.Err() != nil:
			return
		case err != nil:
			t.Errorf("%s %s: %v", s.path, s.body, err)
			return
		case said != s.said:
			t.Errorf("%s %s: the answer is not that which it has alone:\n%s\nwant:\n%s", s.path, s.body, said, s.said)
			return
		}
		c.answered.Add(1)
	}
}

// unseen is a prompt that nobody has sent before, so that what others have in the cache has to leave it. Its answer is
// not known.
func unseen(random *rand.Rand) *soaked {
	var prompt strings.Builder
	for range 50 + random.IntN(400) {
		fmt.Fprintf(&prompt, " %x", random.IntN(1<<16))
	}
	return &soaked{path: "/v1/completions", status: http.StatusOK,
		body: fmt.Sprintf(`{"model":"demo","max_tokens":4,"prompt":%q}`, prompt.String())}
}

// resident is the memory of a process, in bytes.
func resident(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	require.NoError(t, err)
	return kib * 1024
}

// rise is how much a line through values, taken at equal times, rises from the first to the last.
func rise(values []float64) float64 {
	n := float64(len(values))
	var sum, weighed float64
	for i, v := range values {
		sum += v
		weighed += v * float64(i)
	}
	middle := (n - 1) / 2
	return (weighed - middle*sum) / (n * (n*n - 1) / 12) * (n - 1)
}

// crowdOf is how many clients ask at a time.
const crowdOf = 24

// soakTime in the environment is how long TestSoakOfServe takes.
const soakTime = "SLUICE_SOAK"

// TestSoakOfServe: 24 clients with three keys ask sluice serve in all dialects, and leave some answers: every answer is
// the one that the same request has when nobody else asks, and memory does not rise once the server is warm.
func TestSoakOfServe(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	total, err := time.ParseDuration(cmp.Or(os.Getenv(soakTime), "12s"))
	require.NoError(t, err)
	shared := testref.Dir(t)
	url, server, stderr := startApart(t, "--api-key", "third", "--log", "warn",
		"-m", "demo="+filepath.Join(shared, "models", "moe-Q4_K_M.gguf"),
		"-m", "small="+filepath.Join(shared, "fixtures", "bert.gguf"))
	c := &crowd{url: url, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowdOf}}}
	all := soakedRequests()
	for _, s := range all {
		s.said, err = c.ask(t.Context(), s, "k", 0)
		require.NoError(t, err, "%s %s", s.path, s.body)
		require.Equal(t, s.status == http.StatusOK, s.said != "", "%s %s", s.path, s.body)
	}
	seed := uint64(time.Now().UnixNano())
	ctx, end := context.WithTimeout(t.Context(), total)
	defer end()
	var clients sync.WaitGroup
	for i := range crowdOf {
		clients.Go(func() { c.live(ctx, t, all, i, seed) })
	}
	var memory []float64
	for ctx.Err() == nil {
		memory = append(memory, resident(t, server.Process.Pid))
		time.Sleep(total / 200)
	}
	clients.Wait()
	rest := memory[len(memory)/3:]
	t.Logf("seed %d: %d answers as alone, %d left; memory %.0f MiB at first, %.0f after a third, rises by %.1f from there",
		seed, c.answered.Load(), c.aborted.Load(), memory[0]/(1<<20), rest[0]/(1<<20), rise(rest)/(1<<20))
	require.Positive(t, c.answered.Load())
	require.Less(t, rise(rest), 0.05*rest[0]+8<<20, "memory rises")
	for _, s := range all {
		said, err := c.ask(t.Context(), s, "k", 0)
		require.NoError(t, err, "afterwards")
		require.Equal(t, s.said, said, "afterwards")
	}
	c.http.CloseIdleConnections()
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
	require.NotContains(t, stderr.String(), " ERR ")
}
