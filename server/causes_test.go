package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// causes is the object that says what an answer's time went to, in milliseconds.
type causes struct {
	all             map[string]json.RawMessage
	Prefill, Decode map[string]float64
	wall, sum       float64
}

// causesIn finds the object in an answer or its events.
func causesIn(t *testing.T, said string) (c causes) {
	_, rest, found := strings.Cut(said, `"causes":`)
	require.True(t, found, said)
	require.NoError(t, json.NewDecoder(strings.NewReader(rest)).Decode(&c.all))
	text, err := json.Marshal(c.all)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &c))
	for name, raw := range c.all {
		var ms float64
		if json.Unmarshal(raw, &ms) != nil {
			continue
		}
		require.GreaterOrEqual(t, ms, 0., name)
		if name == "wall_ms" {
			c.wall = ms
		} else {
			c.sum += ms
		}
	}
	for _, phase := range []map[string]float64{c.Prefill, c.Decode} {
		require.Len(t, phase, 6)
		for name, ms := range phase {
			require.GreaterOrEqual(t, ms, 0., name)
			c.sum += ms
		}
	}
	return c
}

// TestCausesAreTold: whoever asks is told what the time of an answer went to, in every API, in streams and without;
// it sums to the time that the client waited, but for what the network took.
func TestCausesAreTold(t *testing.T) {
	r := start(t, Options{}, nil)
	for _, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"hello"}],"max_tokens":20`},
		{"/v1/completions", `"prompt":"hello","max_tokens":20`},
		{"/v1/responses", `"input":"hello","max_output_tokens":20`},
		{"/v1/messages", `"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":20`},
		{"/completion", `"prompt":"hello","n_predict":20`},
		{"/api/chat", `"model":"m","messages":[{"role":"user","content":"hello"}],"options":{"num_predict":20}`},
		{"/api/generate", `"model":"m","prompt":"hello","options":{"num_predict":20}`},
	} {
		for _, stream := range []string{`"stream":true,`, `"stream":false,`} {
			t.Run(c.path+stream, func(t *testing.T) {
				_, said := r.post(t, c.path, `{`+stream+c.body+`}`)
				require.NotContains(t, said, "causes")
				began := time.Now()
				status, said := r.post(t, c.path, `{"timings_causes":true,`+stream+c.body+`}`)
				took := time.Since(began)
				require.Equal(t, http.StatusOK, status, said)
				told := causesIn(t, said)
				require.InDelta(t, told.wall, told.sum, 1e-9)
				require.JSONEq(t, "0", string(told.all["residual_ms"]))
				require.LessOrEqual(t, told.wall, float64(took)/1e6)
				require.Positive(t, told.Prefill["compute_ms"])
				require.Positive(t, told.Decode["compute_ms"])
				require.Contains(t, told.all, "write_ms")
			})
		}
	}
}

// TestCausesByHeader: clients whose libraries send no fields of ours ask by a header.
func TestCausesByHeader(t *testing.T) {
	r := start(t, Options{}, nil)
	ask := func(value string) string {
		status, said := r.call(t, http.MethodPost, "/v1/completions", `{"prompt":"a","max_tokens":2}`, "X-Timings", value)
		require.Equal(t, http.StatusOK, status)
		return said
	}
	require.NotContains(t, ask("all"), "causes")
	require.Positive(t, causesIn(t, ask("causes")).wall)
}

// TestCausesOfForms: the time that compiling a form takes, and finding what it allows, is grammar.
func TestCausesOfForms(t *testing.T) {
	r := start(t, Options{}, nil)
	_, said := r.post(t, "/completion", `{"prompt":"a","n_predict":5,"timings_causes":true,"grammar":"root ::= [a-z]+ \" \" [a-z]+"}`)
	var ms float64
	require.NoError(t, json.Unmarshal(causesIn(t, said).all["grammar_ms"], &ms))
	require.Positive(t, ms)
}
