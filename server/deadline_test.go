package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/answer"
)

// learn has the engine see some steps, so that it can foresee others.
func (r *running) learn(t *testing.T) {
	for i := range 4 {
		status, said := r.post(t, "/completion", fmt.Sprintf(`{"prompt":"%d %s","n_predict":40,"ignore_eos":true}`, i,
			strings.Repeat("one two three ", 10*i)))
		require.Equal(t, http.StatusOK, status, said)
	}
}

// TestDeadlines: a deadline that cannot be kept is refused at once, in the API's own shape, with what would be
// possible; one that can be changes nothing but that the answer says what was predicted.
func TestDeadlines(t *testing.T) {
	r := start(t, Options{}, nil)
	r.learn(t)
	for _, c := range []struct{ path, body, fault string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"hello"}],"max_tokens":1000`, `"code":"deadline_too_short"`},
		{"/v1/responses", `"input":"hello","max_output_tokens":1000`, `"code":"deadline_too_short"`},
		{"/v1/messages", `"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":1000`, `"type":"invalid_request_error"`},
		{"/completion", `"prompt":"hello","n_predict":1000`, `"type":"invalid_request_error"`},
		{"/api/chat", `"model":"m","messages":[{"role":"user","content":"hello"}],"options":{"num_predict":1000}`, `{"error":"deadline_ms is 1, but `},
	} {
		status, said := r.post(t, c.path, `{"deadline_ms":1,`+c.body+`}`)
		require.Equal(t, http.StatusBadRequest, status, said)
		require.Contains(t, said, c.fault)
		require.Regexp(t, `deadline_ms is 1, but also without other requests the first token is expected after \d+ ms and all 1000 after \d+ ms: `+
			`allow \d+ ms, or ask for at most \d tokens`, said)
		status, said = r.post(t, c.path, `{"deadline_ms":600000,`+strings.Replace(c.body, "1000", "5", 1)+`}`)
		require.Equal(t, http.StatusOK, status, said)
		_, rest, found := strings.Cut(said, `"predicted":`)
		require.True(t, found, said)
		var told struct {
			First float64 `json:"first_token_ms"`
			Rate  float64 `json:"per_second"`
		}
		require.NoError(t, json.NewDecoder(strings.NewReader(rest)).Decode(&told))
		require.Positive(t, told.First)
		require.Positive(t, told.Rate)
	}
}

// TestDeadlineHeader: the header asks for what the field does, which goes before it.
func TestDeadlineHeader(t *testing.T) {
	r := start(t, Options{}, nil)
	r.learn(t)
	ask := func(deadline, body string) (int, string) {
		return r.call(t, http.MethodPost, "/v1/completions", `{"prompt":"a","max_tokens":900`+body+`}`, "X-Deadline", deadline)
	}
	status, said := ask("1", "")
	require.Equal(t, http.StatusBadRequest, status, said)
	require.Contains(t, said, "deadline_too_short")
	status, said = ask("1", `,"deadline_ms":600000`)
	require.Equal(t, http.StatusOK, status, said)
	for _, wrong := range []string{"soon", "0", "-5", "1.5", fmt.Sprint(answer.MostDeadline + 1)} {
		status, said = ask(wrong, "")
		require.Equal(t, http.StatusBadRequest, status, said)
		require.Contains(t, said, "want milliseconds from 1 to 604800000, such as 2500")
	}
}

// TestAnswersEndByTheirDeadline: an answer without a bound of its own is as long as there is time for.
func TestAnswersEndByTheirDeadline(t *testing.T) {
	r := start(t, Options{}, nil)
	length := func(deadline int) (tokens int, whole bool) {
		status, said := r.post(t, "/completion", fmt.Sprintf(`{"prompt":"a","ignore_eos":true,"deadline_ms":%d}`, deadline))
		if status == http.StatusServiceUnavailable || status == http.StatusBadRequest { // a slow machine
			require.Contains(t, said, "deadline_ms")
			return 0, false
		}
		require.Equal(t, http.StatusOK, status, said)
		require.Contains(t, said, `"stop_type":"limit"`)
		var answer struct {
			Tokens int `json:"tokens_predicted"`
		}
		require.NoError(t, json.Unmarshal([]byte(said), &answer))
		return answer.Tokens, true
	}
	all, _ := length(answer.MostDeadline)
	some, _ := length(30)
	require.Less(t, some, all)
}
