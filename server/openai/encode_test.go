package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

func TestLogProbIsJSON(t *testing.T) {
	for _, p := range []float32{0, -0.5, float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN()), -1e30, -1e-30} {
		var x float64
		require.NoError(t, json.Unmarshal(wire.AppendLogProb(nil, p), &x))
		require.GreaterOrEqual(t, x, -9999.0)
	}
}

func TestTimings(t *testing.T) {
	timings := func(u actors.Usage) string {
		return string(wire.AppendTimings(nil, (&answer.Choice{Usage: u}).Timings()))
	}
	u := actors.Usage{Prompt: 10, Cached: 4, Generated: 5, Prefill: 3 * time.Millisecond, Decode: 10 * time.Millisecond}
	require.JSONEq(t, `{"cache_n":4,"prompt_n":6,"prompt_ms":3,"prompt_per_token_ms":0.5,"prompt_per_second":2000,
		"predicted_n":5,"predicted_ms":10,"predicted_per_token_ms":2,"predicted_per_second":500}`, timings(u))
	require.True(t, json.Valid([]byte(timings(actors.Usage{}))))
	u.Proposed, u.Accepted = 7, 5
	require.Contains(t, timings(u), `,"draft_n":7,"draft_n_accepted":5}`)
}

// TestNoAlloc: an event of a stream is written into a buffer that is used again.
func TestNoAlloc(t *testing.T) {
	c := &answer.Choice{New: answer.News{Parts: []answer.Part{
		{Text: []byte(`some "text" of a token, ` + strings.Repeat("é\n", 8))}}}}
	buf := make([]byte, 0, 4096)
	for _, s := range []shape{chatShape{}, textShape{}} {
		e := newEncoder(&request{Order: answer.Order{Model: &answer.Model{Name: "model"}}}, "cmpl-1", "text_completion", "x", time.Now(), s)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			buf = e.Part(buf[:0], c)
		}), "%T", s)
		require.True(t, json.Valid(buf[len("data: "):]))
	}
}

// TestCalls: a call's first delta has its id and name, those after it say which one they go on with; a whole answer has
// all of them, and no content where nothing is said.
func TestCalls(t *testing.T) {
	c := &answer.Choice{Calls: 2, Finish: actors.Stopped, New: answer.News{Parts: []answer.Part{
		{Kind: answer.Call, Text: []byte(`1}`)}, {Kind: answer.Call, Call: 1, Name: "g", ID: "id", Text: []byte(`{"b"`)}}}}
	require.Equal(t, `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},`+
		`{"index":1,"id":"id","type":"function","function":{"name":"g","arguments":"{\"b\""}}]},"logprobs":null,"finish_reason":null}`,
		string(chatShape{}.part(nil, c)))
	require.Contains(t, string(chatShape{}.last(nil, c)), `"finish_reason":"tool_calls"`)
	c.New.Parts = c.New.Parts[1:]
	const call = `{"role":"assistant","tool_calls":[{"id":"id","type":"function","function":{"name":"g","arguments":"{\"b\""}}],"content":`
	require.Equal(t, `{"index":0,"message":`+call+`null,"refusal":null},"logprobs":null,"finish_reason":"tool_calls"}`,
		string(chatShape{}.whole(nil, c, goOn)))
	c.New.Parts, c.Finish = append(c.New.Parts, answer.Part{Text: []byte("So")}), actors.Length
	require.Equal(t, `{"index":0,"message":`+call+`"So","refusal":null},"logprobs":null,"finish_reason":"length"}`,
		string(chatShape{}.whole(nil, c, goOn)))
	require.Contains(t, string(chatShape{}.part(nil, c)), "\"}}],\"content\":\"So\"},")
}

// TestUsage: thoughts of all choices are counted, and events before the counts say that these are still to come.
func TestUsage(t *testing.T) {
	u := actors.Usage{Prompt: 10, Cached: 4, Generated: 5}
	choices := []*answer.Choice{{Usage: u, Pondered: 3}, {Usage: u, Pondered: 2}}
	require.JSONEq(t, `{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20,"prompt_tokens_details":{"cached_tokens":4},
		"completion_tokens_details":{"reasoning_tokens":5}}`, string(appendUsage(nil, choices)))
	choices[1].Usage.Proposed, choices[1].Usage.Accepted = 7, 5
	require.Contains(t, string(appendUsage(nil, choices)), `"completion_tokens_details":{"reasoning_tokens":5,`+
		`"accepted_prediction_tokens":5,"rejected_prediction_tokens":2}}`)
	for _, usage := range []bool{false, true} {
		asked := request{Order: answer.Order{Model: &answer.Model{Name: "model"}}, usage: usage}
		e := newEncoder(&asked, "1", "chunk", "x", time.Now(), chatShape{})
		for _, event := range [][]byte{e.Begin(nil, choices[0]), e.Part(nil, choices[0]), e.End(nil, choices[0])} {
			var got map[string]any
			require.NoError(t, json.Unmarshal(event[len("data: "):], &got))
			v, said := got["usage"]
			require.Equal(t, usage, said)
			require.Nil(t, v)
		}
		require.Equal(t, usage, strings.Contains(string(e.Close(nil, choices)), `"reasoning_tokens":5`))
	}
}
