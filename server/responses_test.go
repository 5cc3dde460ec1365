package server

import (
	"encoding/json"
	"net/http"
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

// TestResponsesGoOn: with the id of an answer the next one is what it is with the whole conversation, calls and their
// results too, whole and streamed; to others, and where it was not to be kept, the answer is unknown.
func TestResponsesGoOn(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"one", "two"}}, nil)
	type response struct {
		ID       string
		Store    bool
		Previous string `json:"previous_response_id"`
		Output   []json.RawMessage
		Usage    struct {
			Tokens int `json:"input_tokens"`
		}
	}
	ask := func(body, key string) (got response, status int, text string) {
		status, text = r.call(t, http.MethodPost, "/v1/responses", `{"temperature":0,"max_output_tokens":60,`+body+`}`,
			"Authorization", "Bearer "+key)
		if _, last, streamed := strings.Cut(text, "event: response.completed\ndata: "); streamed {
			text = strings.TrimSuffix(last[strings.Index(last, `"response":`)+len(`"response":`):], "}\n\n")
		}
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		return got, status, text
	}
	const tools = `,"tools":[{"type":"function","name":"get","parameters":{"type":"object","properties":{"place":{"enum":["Oslo",
		"Rome"]}},"required":["place"],"additionalProperties":false}}],"parallel_tool_calls":false`
	for _, stream := range []string{`,"stream":false`, `,"stream":true`} {
		one, status, text := ask(`"input":"Weather?","tool_choice":"required"`+tools+stream, "one")
		require.Equal(t, 200, status, text)
		require.True(t, one.Store)
		var call struct {
			ID string `json:"call_id"`
		}
		require.NoError(t, json.Unmarshal(one.Output[len(one.Output)-1], &call))
		result := `{"type":"function_call_output","call_id":"` + call.ID + `","output":"rain"}`
		two, status, text := ask(`"input":[`+result+`],"previous_response_id":"`+one.ID+`"`+tools+stream, "one")
		require.Equal(t, 200, status, text)
		require.Equal(t, one.ID, two.Previous)
		items := `{"role":"user","content":"Weather?"},` + string(one.Output[len(one.Output)-1]) + `,` + result
		whole, _, _ := ask(`"input":[`+items+`]`+tools, "one")
		require.Equal(t, said(t, whole.Output), said(t, two.Output))
		require.Equal(t, whole.Usage, two.Usage)
		three, _, _ := ask(`"input":"And now?","store":false,"previous_response_id":"`+two.ID+`"`+tools+stream, "one")
		whole, _, _ = ask(`"input":[`+items+`,`+string(two.Output[0])+`,{"role":"user","content":"And now?"}]`+tools, "one")
		require.Equal(t, said(t, whole.Output), said(t, three.Output))
		require.Equal(t, whole.Usage, three.Usage)
		require.False(t, three.Store)
		for id, key := range map[string]string{two.ID: "two", three.ID: "one", "resp_0": "one"} {
			_, status, text = ask(`"input":"x","previous_response_id":"`+id+`"`, key)
			require.Equal(t, 400, status)
			require.Contains(t, text, `"previous_response_not_found"`)
		}
	}
}

// TestResponsesCutAreNotStored: answers that are cut leave room to those that can be gone on with.
func TestResponsesCutAreNotStored(t *testing.T) {
	r := start(t, Options{}, nil)
	status, text := r.post(t, "/v1/responses", `{"input":"12 + 30","max_output_tokens":4}`)
	require.Equal(t, 200, status, text)
	var one struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(text), &one))
	large := strings.Repeat("x", 1<<20-1000) // the server stores 8 MiB
	for range 9 {
		conn := r.dial(t, "/v1/responses",
			`{"input":[{"role":"user","content":"Tell me a story.","id":"`+large+`"}],"stream":true}`)
		readEvents(t, conn, 3)
		require.NoError(t, conn.Close())
		r.open(t, 0)
	}
	status, text = r.post(t, "/v1/responses",
		`{"input":"and 1","max_output_tokens":4,"previous_response_id":"`+one.ID+`"}`)
	require.Equal(t, 200, status, text)
}

// said is what items say.
func said(t *testing.T, items []json.RawMessage) (all []string) {
	for _, raw := range items {
		var item struct {
			Content   []struct{ Text string }
			Arguments string
		}
		require.NoError(t, json.Unmarshal(raw, &item))
		for _, c := range item.Content {
			all = append(all, c.Text)
		}
		all = append(all, item.Arguments)
	}
	return all
}

// TestResponsesAreForgotten: DELETE has a conversation of one's own gone; those of others are not seen.
func TestResponsesAreForgotten(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"mine", "theirs"}}, nil)
	ask := func(key, method, path, body string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+key)
		a, err := r.http.Do(q)
		require.NoError(t, err)
		return read(t, a)
	}
	status, text := ask("mine", "POST", "/v1/responses", `{"input":"12 + 30","max_output_tokens":20}`)
	require.Equal(t, 200, status, text)
	var first struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(text), &first))
	next := `{"input":"And 12 + 31?","max_output_tokens":5,"previous_response_id":"` + first.ID + `"}`
	status, text = ask("theirs", "DELETE", "/v1/responses/"+first.ID, "")
	require.Equal(t, 404, status, text)
	require.Contains(t, text, "no such answer of yours")
	status, text = ask("mine", "POST", "/v1/responses", next)
	require.Equal(t, 200, status, text)
	status, text = ask("mine", "DELETE", "/v1/responses/"+first.ID, "")
	require.Equal(t, 200, status, text)
	require.JSONEq(t, `{"id":"`+first.ID+`","object":"response","deleted":true}`, text)
	status, text = ask("mine", "DELETE", "/v1/responses/"+first.ID, "")
	require.Equal(t, 404, status, text)
	status, text = ask("mine", "POST", "/v1/responses", next)
	require.Equal(t, 400, status, text)
	require.Contains(t, text, "previous_response_not_found")
	for _, path := range []string{"/v1/responses/", "/v1/responses/input_tokens"} {
		status, _ = ask("mine", "DELETE", path, "")
		require.Contains(t, []int{404, 405}, status, path)
	}
}
