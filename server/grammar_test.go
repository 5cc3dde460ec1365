package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDearGrammars: a grammar that takes too long to follow is its client's mistake, in each API that takes one, also
// when some of the answer was sent; and others' answers are what they are alone.
func TestDearGrammars(t *testing.T) {
	r := start(t, Options{}, nil)
	ask := func() string {
		status, text := r.post(t, "/v1/completions", `{"prompt":"Once upon a time","max_tokens":16,"temperature":0}`)
		require.Equal(t, 200, status)
		var answer struct{ Choices []struct{ Text string } }
		require.NoError(t, json.Unmarshal([]byte(text), &answer))
		return answer.Choices[0].Text
	}
	want := ask()
	const dear = `"grammar":"root ::= s\ns ::= [a-z ] s s | [a-z ]"}`
	for _, c := range []struct {
		path, body string
		status     int
		kind       string
	}{
		{"/v1/completions", `{"prompt":"The story of","max_tokens":2000,` + dear, 400, "invalid_request_error"},
		{"/v1/completions", `{"prompt":"The story of","max_tokens":2000,"stream":true,` + dear, 200, "invalid_request_error"},
		{"/completion", `{"prompt":"The story of","n_predict":2000,` + dear, 400, "invalid_request_error"},
	} {
		answered := make(chan string)
		go func() {
			defer close(answered)
			answered <- ask()
		}()
		status, text := r.post(t, c.path, c.body)
		require.Equal(t, c.status, status, text)
		require.Contains(t, text, c.kind)
		require.Regexp(t, `after \d+ tokens of the answer, the grammar needs more than 1000000 steps to find what`, text)
		require.Equal(t, want, <-answered)
	}
	require.NotContains(t, r.log.String(), `"level":"error"`, "it is the client's fault")
}
