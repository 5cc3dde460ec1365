package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// every is a request of each kind that a dialect has: path, header and body, of which %d is a number from 0 to 9.
var every = [][2]string{
	{"/v1/completions", `{"prompt":"Number %d:","max_tokens":20,"temperature":0}`},
	{"/v1/completions", `{"prompt":["Number %d:","func f"],"n":2,"seed":7,"max_tokens":12,"temperature":1.2,"stream":true}`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"What is %d + 1?"}],"seed":3,"max_tokens":30}`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"Say %d"}],"temperature":0,"max_tokens":40,"stream":true,
		"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{
		"n":{"type":"integer"},"of":{"enum":["red","blue"]}},"required":["n","of"],"additionalProperties":false}}}}`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"Weather in town %d?"}],"temperature":0,"max_tokens":60,
		"stream":true,"tool_choice":"required","tools":[{"type":"function","function":{"name":"weather","parameters":{
		"type":"object","properties":{"town":{"type":"string"}},"required":["town"],"additionalProperties":false}}}]}`},
	{"/v1/responses", `{"input":"What is %d + 2?","temperature":0,"max_output_tokens":30}`},
	{"/v1/responses", `{"input":"Say %d","temperature":0,"max_output_tokens":30,"stream":true}`},
	{"/v1/messages", `{"model":"m","max_tokens":30,"temperature":0,"messages":[{"role":"user","content":"What is %d + 3?"}]}`},
	{"/v1/messages", `{"model":"m","max_tokens":60,"temperature":0,"stream":true,"tool_choice":{"type":"any"},
		"tools":[{"name":"look","input_schema":{"type":"object","properties":{"at":{"type":"integer"}},"required":["at"]}}],
		"messages":[{"role":"user","content":"Look at %d"}]}`},
	{"/api/chat", `{"model":"m","messages":[{"role":"user","content":"What is %d + 4?"}],
		"options":{"temperature":0,"num_predict":30}}`},
	{"/api/generate", `{"model":"m","prompt":"Say %d","stream":false,"options":{"seed":5,"num_predict":30}}`},
	{"/completion", `{"prompt":"Number %d is","n_predict":20,"temperature":0}`},
	{"/completion", `{"prompt":"Number %d is","n_predict":20,"temperature":0,"stream":true}`},
}

// TestDialectsTogether: 64 clients of all dialects get the answers that each gets alone, and leave nothing behind.
func TestDialectsTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	total := 15 * time.Second
	if text := os.Getenv(soakTime); text != "" {
		var err error
		total, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	c := startChild(t)
	ask := func(k int) (string, error) {
		q := every[k%len(every)]
		body := q[1]
		if strings.Contains(body, "%d") {
			body = fmt.Sprintf(body, k/len(every)%10)
		}
		return c.said(q[0], body)
	}
	alone := make([]string, 10*len(every))
	for k := range alone {
		var err error
		alone[k], err = ask(k)
		require.NoError(t, err)
		require.Greater(t, len(alone[k]), 20, "%s", every[k%len(every)])
	}
	c.http.CloseIdleConnections()
	descriptors := c.descriptors(t)
	ctx, end := context.WithTimeout(t.Context(), total)
	defer end()
	var clients sync.WaitGroup
	var answered atomic.Int64
	for i := range 64 {
		clients.Go(func() {
			for k := i * 37; ctx.Err() == nil; k += 11 {
				got, err := ask(k % len(alone))
				if err != nil || got != alone[k%len(alone)] {
					t.Errorf("%s: %q, alone %q: %v", every[k%len(alone)%len(every)], got, alone[k%len(alone)], err)
					return
				}
				answered.Add(1)
			}
		})
	}
	early := c.warm(ctx, t, total/5, func() bool { return answered.Load() >= 2*64 })
	clients.Wait()
	c.http.CloseIdleConnections()
	late := c.memory(t, "VmRSS")
	t.Logf("%d answers; %d MiB after %v, %d after %v", answered.Load(), early>>20, total/5, late>>20, total)
	require.Less(t, late, early*12/10)
	require.Eventually(t, func() bool { return c.descriptors(t) <= descriptors+2 }, patient, 50*time.Millisecond)
}

// descriptors counts the files and connections that the child has open.
func (c *child) descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.pid))
	require.NoError(t, err)
	return len(all)
}

// said is all that an answer says, by whatever dialect, whole or in parts.
func (c *child) said(path, body string) (string, error) {
	r, err := http.NewRequest(http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("anthropic-version", "2023-06-01")
	answer, err := c.http.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d: %s: %w", answer.StatusCode, data, err)
	}
	by := map[string]string{} // by choice: choices of a stream come in any order
	for line := range bytes.Lines(data) {
		var v any
		if line = bytes.TrimPrefix(line, []byte("data: ")); json.Unmarshal(line, &v) == nil {
			gather(by, "", v)
		}
	}
	out, err := json.Marshal(by)
	return string(out), err
}

// gather adds up the texts that an answer's JSON has, by choice.
func gather(by map[string]string, choice string, v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			gather(by, choice, x)
		}
	case map[string]any:
		if i, ok := v["index"].(float64); ok && v["type"] == nil {
			choice = fmt.Sprint(i)
		}
		for _, key := range []string{"text", "content", "reasoning_content", "thinking", "response", "delta", "arguments",
			"partial_json", "name", "finish_reason", "stop_reason", "done_reason", "stop_type"} {
			if s, ok := v[key].(string); ok {
				by[choice+" "+key] += s
			}
		}
		for _, key := range []string{"choices", "message", "delta", "tool_calls", "function", "content", "content_block",
			"output", "response"} {
			gather(by, choice, v[key])
		}
	}
}
