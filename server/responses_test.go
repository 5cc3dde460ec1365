package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResponsesAreCounted: what is counted is what an answer reports, and nothing is computed for it.
func TestResponsesAreCounted(t *testing.T) {
	r := start(t, Options{}, nil)
	const body = `"instructions":"Add.","input":[{"role":"user","content":"12 + 30"}],"tools":[{"type":"function","name":"f"}]`
	var counted struct {
		Object string
		Tokens int `json:"input_tokens"`
	}
	status, text := r.post(t, "/v1/responses/input_tokens", `{`+body+`}`)
	require.Equal(t, 200, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &counted))
	require.Zero(t, r.engine.Snapshot().Requests)
	var answered struct {
		Usage struct {
			Tokens int `json:"input_tokens"`
		}
	}
	status, text = r.post(t, "/v1/responses", `{"max_output_tokens":1,`+body+`}`)
	require.Equal(t, 200, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &answered))
	require.Equal(t, "response.input_tokens", counted.Object)
	require.Positive(t, counted.Tokens)
	require.Equal(t, counted.Tokens, answered.Usage.Tokens)
}

// TestResponsesCall: a forced call is an item, of the same arguments in the events and at the end.
func TestResponsesCall(t *testing.T) {
	r := start(t, Options{}, nil)
	const body = `"input":"Weather?","tools":[{"type":"function","name":"get","parameters":{"type":"object",
		"properties":{"place":{"enum":["Oslo","Rome"]}},"required":["place"],"additionalProperties":false}}],
		"tool_choice":{"type":"function","name":"get"},"temperature":0`
	var got struct {
		Choice json.RawMessage `json:"tool_choice"`
		Output []struct{ Type, Name, Arguments, Status string }
	}
	status, text := r.post(t, "/v1/responses", `{`+body+`}`)
	require.Equal(t, 200, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.JSONEq(t, `{"type":"function","name":"get"}`, string(got.Choice))
	call := got.Output[len(got.Output)-1]
	require.Equal(t, []string{"function_call", "get", "completed"}, []string{call.Type, call.Name, call.Status})
	require.Regexp(t, `^\{"place": ?"(Oslo|Rome)"\}$`, call.Arguments)
	status, text = r.post(t, "/v1/responses", `{`+body+`,"stream":true}`)
	require.Equal(t, 200, status)
	arguments, err := json.Marshal(call.Arguments)
	require.NoError(t, err)
	require.Contains(t, text, `"arguments":`+string(arguments)+`,"name":"get"}`)

	status, text = r.post(t, "/api/chat", `{"model":"x","messages":[{"role":"user","content":"Weather?"}],"options":{"temperature":0},
		"stream":false,"tool_choice":"required","tools":[{"type":"function","function":{"name":"get","parameters":{"type":"object",
		"properties":{"place":{"enum":["Oslo","Rome"]}},"required":["place"],"additionalProperties":false}}}]}`)
	require.Equal(t, 200, status, text)
	require.Regexp(t, `"tool_calls":\[\{"id":"[^"]+","function":\{"index":0,"name":"get","arguments":\{"place":"(Oslo|Rome)"\}\}\}\]`, text)
}

// TestResponsesProbs: the log-probabilities of a message are in the events of a stream, or in the whole answer.
func TestResponsesProbs(t *testing.T) {
	r := start(t, Options{}, nil)
	type prob struct {
		Token string
		Top   []struct{ Token string } `json:"top_logprobs"`
	}
	var got struct {
		Output []struct {
			Content []struct{ LogProbs []prob }
		}
	}
	const body = `{"input":"12 + 30","temperature":0,"top_logprobs":2`
	status, text := r.post(t, "/v1/responses", body+`}`)
	require.Equal(t, 200, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &got), text)
	joined := func(probs []prob) (said string) {
		for _, p := range probs {
			require.Len(t, p.Top, 2)
			said += p.Token
		}
		return said
	}
	require.Equal(t, "12 + 30 = 42.", joined(got.Output[0].Content[0].LogProbs))
	_, text = r.post(t, "/v1/responses", body+`,"stream":true}`)
	said := ""
	for _, event := range strings.Split(text, "\n\n") {
		var delta struct {
			Type     string
			LogProbs []prob
		}
		if _, data, ok := strings.Cut(event, "\ndata: "); ok {
			require.NoError(t, json.Unmarshal([]byte(data), &delta), data)
			said += joined(delta.LogProbs)
		}
	}
	require.Equal(t, "12 + 30 = 42.", said)
}
