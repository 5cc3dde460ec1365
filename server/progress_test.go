package server

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReadingIsTold: a client that asks for it hears how far its prompt is read, in llama-server's member, before the
// first token.
func TestReadingIsTold(t *testing.T) {
	r := start(t, Options{}, nil)
	told := regexp.MustCompile(`"prompt_progress":\{"total":(\d+),"cache":(\d+),"processed":(\d+),"time_ms":\d+\}\}`)
	long := strings.Repeat("one two three ", 300)
	for i, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"%s"}],"max_tokens":2`},
		{"/v1/completions", `"prompt":"%s","max_tokens":2`},
		{"/completion", `"prompt":"%s","n_predict":2`},
	} {
		body := fmt.Sprintf(c.body, fmt.Sprint(i, long))
		status, said := r.post(t, c.path, `{"stream":true,"return_progress":true,`+body+`}`)
		require.Equal(t, http.StatusOK, status, said)
		all := told.FindAllStringSubmatch(said, -1)
		require.NotEmpty(t, all, "%s: %.300s", c.path, said)
		last := all[len(all)-1]
		require.Equal(t, last[1], last[3], "all was read: %s", last[0])
		require.Greater(t, len(last[1]), 2)
		require.Less(t, strings.LastIndex(said, "prompt_progress"), strings.LastIndex(said, `"timings"`))
		_, said = r.post(t, c.path, `{"stream":true,`+body+`}`)
		require.NotContains(t, said, "prompt_progress")
		_, said = r.post(t, c.path, `{"return_progress":true,`+body+`}`)
		require.NotContains(t, said, "prompt_progress")
	}
}

// TestReadingKeepsClientsPatient: a stream whose prompt takes long to read has comments before its first event.
func TestReadingKeepsClientsPatient(t *testing.T) {
	r := start(t, Options{Beat: time.Millisecond}, nil)
	comment := regexp.MustCompile(`^: reading the prompt, \d+ of \d{3,} tokens\n\n`)
	long := strings.Repeat("one two three ", 300)
	for i, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"%s"}],"max_tokens":2`},
		{"/v1/responses", `"input":"%s","max_output_tokens":2`},
		{"/v1/messages", `"model":"m","messages":[{"role":"user","content":"%s"}],"max_tokens":2`},
		{"/completion", `"prompt":"%s","n_predict":2`},
	} {
		status, said := r.post(t, c.path, `{"stream":true,`+fmt.Sprintf(c.body, fmt.Sprint(i, long))+`}`)
		require.Equal(t, http.StatusOK, status, said)
		require.Regexp(t, comment, said, c.path)
		require.Contains(t, said, "\ndata: {", c.path)
	}
	status, said := r.post(t, "/api/chat", `{"model":"m","messages":[{"role":"user","content":"`+long+`"}],"options":{"num_predict":2}}`)
	require.Equal(t, http.StatusOK, status, said)
	require.True(t, strings.HasPrefix(said, `{"model"`), "lines of JSON have no comments")
}
