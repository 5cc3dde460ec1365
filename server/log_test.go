package server

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// line is what the log says of one request.
type line struct {
	Request, Client, Method, Path, Error, Message string
	Status                                        int
	Prompt                                        int `json:"prompt_tokens"`
	Generated                                     int `json:"generated_tokens"`
}

// logged waits for the line of a request.
func (r *running) logged(t *testing.T, id string) (found line) {
	t.Helper()
	require.Eventually(t, func() bool {
		for text := range strings.Lines(r.log.String()) {
			var l line
			require.NoError(t, json.Unmarshal([]byte(text), &l))
			if l.Request == id && l.Message == "answered" {
				found = l
				return true
			}
		}
		return false
	}, patient, 5*time.Millisecond, "%s", id)
	return found
}

// send sends a request with an id of its own.
func (r *running) send(t *testing.T, id, body string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("X-Request-Id", id)
	answer, err := r.http.Do(q)
	require.NoError(t, err)
	return answer
}

// The log says who asked, what was wrong, and what an answer took, also one that was cut.
func TestLog(t *testing.T) {
	r := start(t, Options{}, nil)
	const question = `"messages": [{"role": "user", "content": "Tell me a short story about a fox."}]`

	whole := r.send(t, "whole-1", `{"max_tokens": 5, `+question+`}`)
	_, err := io.ReadAll(whole.Body)
	require.NoError(t, err)
	whole.Body.Close()
	require.Equal(t, "whole-1", whole.Header.Get("X-Request-Id"))
	l := r.logged(t, "whole-1")
	require.Equal(t, "127.0.0.1", l.Client)
	require.Equal(t, 5, l.Generated)
	require.Positive(t, l.Prompt)
	require.Empty(t, l.Error)

	wrong := r.send(t, "wrong-1", `{"temperature": "hot", `+question+`}`)
	wrong.Body.Close()
	l = r.logged(t, "wrong-1")
	require.Equal(t, http.StatusBadRequest, l.Status)
	require.Contains(t, l.Error, "temperature")

	for _, id := range []string{"", "two words", "<b>", strings.Repeat("x", longestID+1)} {
		got := r.send(t, id, "{").Header.Get("X-Request-Id")
		require.NotEqual(t, id, got)
		require.Len(t, got, 14, "one of ours")
	}

	cut := r.send(t, "cut-1", `{"stream": true, "ignore_eos": true, `+question+`}`)
	events := bufio.NewScanner(cut.Body)
	for range 10 {
		require.True(t, events.Scan())
	}
	cut.Body.Close()
	l = r.logged(t, "cut-1")
	require.Equal(t, 499, l.Status)
	require.Equal(t, "the client has gone", l.Error)
	require.Positive(t, l.Generated)
	require.Positive(t, l.Prompt)
}

// TestLogNamesTheClient: behind a trusted proxy a line names the client whose share is counted, not the proxy.
func TestLogNamesTheClient(t *testing.T) {
	r := start(t, behindProxy, nil)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/models", http.NoBody)
	require.NoError(t, err)
	q.Header.Set("X-Request-Id", "proxied")
	q.Header.Set("X-Forwarded-For", "192.0.2.9")
	answer, err := r.http.Do(q)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "192.0.2.9", r.logged(t, "proxied").Client)
}
