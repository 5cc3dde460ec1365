package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// toolFaults are faults that requests with tools may have: by dialect, what stands beside a conversation, and what the
// error says. A conversation is in it where it matters.
var toolFaults = []struct{ dialect, body, want string }{
	{"chat", `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`, "as another tool's is"},
	{"responses", `"tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]`, "as another tool's is"},
	{"messages", `"tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{}}]`, "as another tool's is"},
	{"ollama", `"tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}]`, "as another tool's is"},
	{"chat", `"tools":[{"type":"function","function":{"name":"<|im_end|>"}}]`, "no blanks, brackets or quotes"},
	{"chat", `"tools":[{"type":"function","function":{"name":"f\u0000"}}]`, "no blanks, brackets or quotes"},
	{"chat", `"tools":[{"type":"function","function":{"name":"\ud83d"}}]`, "no blanks, brackets or quotes"},
	{"messages", `"tools":[{"name":"</tool_call>","input_schema":{}}]`, "no blanks, brackets or quotes"},
	{"chat", `"tools":[],"tool_choice":"required"`, "there are no tools"},
	{"responses", `"tools":[],"tool_choice":"required"`, "there are no tools"},
	{"messages", `"tools":[],"tool_choice":{"type":"any"}`, "there are no tools"},
	{"chat", `"tools":[{"function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}`, `wants a call of "g"`},
	{"responses", `"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}`, `wants a call of "g"`},
	{"messages", `"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"g"}`, `wants a call of "g"`},
	{"chat", `"tools":[{"function":{"name":"f","strict":"yes"}}]`, "strict: want true or false"},
	{"chat", `"tools":[{"function":{"name":"f","strict":true,"parameters":{"uniqueItems":true,"items":{},"type":"array"}}}]`,
		"the parameters of the tool f"},
	{"responses", `"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"array",` +
		`"uniqueItems":true}}}}]`, "uniqueItems is not supported"},
	{"messages", `"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":{"a":{"pattern":"(?=a)"}}}}]`,
		"look-around"},
	{"chat", `"tools":[{"function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"pattern":"(a|b)*a(a|b){40}"}}}}}]`,
		"too many states"},
	{"chat", `"messages":[{"role":"tool","tool_call_id":"nope","content":"x"}]`, `tool_call_id is "nope"`},
	{"responses", `"input":[{"type":"function_call_output","call_id":"nope","output":"x"}]`, `call_id is "nope"`},
	{"messages", `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"nope","content":"x"}]}]`,
		`tool_use_id is "nope"`},
	{"chat", `"messages":[{"role":"assistant","tool_calls":"x"}]`, "messages[0].tool_calls: want a list"},
	{"chat", `"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"arguments":"{}"}}]}]`, "is no call of a function"},
	{"chat", `"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":5}}]}]`, "is no call of a function"},
	{"chat", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]`, "reads text only"},
	{"responses", `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,"}]}]`, "reads text only"},
	{"messages", `"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]`, "this model reads text"},
	{"ollama", `"messages":[{"role":"user","content":"x","images":["AAAA"]}]`, "reads text only"},
	{"chat", `"parallel_tool_calls":"no"`, "want true or false"},
	{"messages", `"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"any","disable_parallel_tool_use":1}`, "want true or false"},
}

// TestOthersTools: tools that are a provider's own, which clients send always, are left out; the functions beside them,
// and in a namespace, can be called.
func TestOthersTools(t *testing.T) {
	r := start(t, Options{}, nil)
	const function = `{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}`
	for _, c := range []struct{ path, body string }{
		{"/v1/responses", `{"input":"x","max_output_tokens":60,"tool_choice":"required","tools":[{"type":"web_search",` +
			`"external_web_access":false},{"type":"custom","name":"c"},{"type":"namespace","name":"multi","tools":[` + function + `]}]}`},
		{"/v1/responses", `{"input":"x","max_output_tokens":60,"tool_choice":"required","tools":[{"type":"web_search"},` + function + `]}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":60,"tool_choice":"required","tools":[` +
			`{"type":"web_search"},{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":60,"tool_choice":"required","tools":[` +
			`{"type":"namespace","name":"multi","tools":[{"type":"function","function":{"name":"f"}}]}]}`},
		{"/v1/messages", `{"model":"any","messages":[{"role":"user","content":"x"}],"max_tokens":60,"tool_choice":{"type":"any"},` +
			`"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"f","input_schema":{"type":"object"}}]}`},
	} {
		status, body := r.post(t, c.path, c.body)
		require.Equal(t, http.StatusOK, status, "%s: %s", c.path, body)
		require.Contains(t, body, `"name":"f"`, c.path)
		require.Equal(t, c.path == "/v1/responses" && strings.Contains(c.body, "multi"), strings.Contains(body, `"namespace":"multi"`),
			"calls in a namespace name it: %s", body)
	}
	require.Contains(t, r.log.String(), `a tool of the type \"web_search\" is left out`)
	require.Contains(t, r.log.String(), `a tool of the type \"web_search_20250305\" is left out`)
	status, body := r.post(t, "/v1/responses", `{"max_output_tokens":3,"input":[{"role":"user","content":"x"},{"type":"function_call",`+
		`"call_id":"c","name":"f","namespace":"multi","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"}]}`)
	require.Equal(t, http.StatusOK, status, "and come back with it: %s", body)
	status, body = r.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":2,`+
		`"tools":[{"type":"web_search"}]}`)
	require.Equal(t, http.StatusOK, status, "none is left: %s", body)
}

// TestToolFaults: what is wrong with tools, calls and results is said in the dialect's own shape, with its status.
func TestToolFaults(t *testing.T) {
	r := start(t, Options{}, nil)
	paths := map[string][2]string{ // and a conversation
		"chat":      {"/v1/chat/completions", `"messages":[{"role":"user","content":"Hi"}]`},
		"responses": {"/v1/responses", `"input":"Hi"`},
		"messages":  {"/v1/messages", `"messages":[{"role":"user","content":"Hi"}],"max_tokens":9`},
		"ollama":    {"/api/chat", `"model":"m","messages":[{"role":"user","content":"Hi"}]`},
	}
	for _, c := range toolFaults {
		for _, stream := range []string{"false", "true"} {
			p := paths[c.dialect]
			status, body := r.post(t, p[0], `{"stream":`+stream+`,`+p[1]+`,`+c.body+`}`)
			require.Equal(t, 400, status, "%s: %s", c.body, body)
			var said struct {
				Type  string
				Error any
			}
			require.NoError(t, json.Unmarshal([]byte(body), &said), body)
			text, plain := said.Error.(string)
			if !plain {
				e := said.Error.(map[string]any)
				require.Equal(t, "invalid_request_error", e["type"])
				text = e["message"].(string)
			}
			require.Equal(t, c.dialect == "ollama", plain, body)
			require.Equal(t, c.dialect == "messages", said.Type == "error", body)
			require.Contains(t, text, c.want)
		}
	}
}

// TestCutCalls: however few tokens an answer may have that is to be a call, no markup is told as text, whole or in a
// stream.
func TestCutCalls(t *testing.T) {
	r := start(t, Options{}, nil)
	const tool = `{"type":"function","function":{"name":"get_weather_of_a_town","parameters":` + cities + `}}`
	const use = `{"name":"get_weather_of_a_town","input_schema":` + cities + `}`
	for most := 1; most <= 16; most++ {
		for _, stream := range []bool{false, true} {
			for path, body := range map[string]string{
				"/v1/chat/completions": `"messages":[{"role":"user","content":"Hi"}],"max_tokens":%d,"tool_choice":"required","tools":[` + tool + `]`,
				"/v1/messages":         `"messages":[{"role":"user","content":"Hi"}],"max_tokens":%d,"tool_choice":{"type":"any"},"tools":[` + use + `]`,
				"/v1/responses": `"input":"Hi","max_output_tokens":%d,"tool_choice":"required","tools":[` +
					`{"type":"function","name":"get_weather_of_a_town","parameters":` + cities + `}]`,
			} {
				status, said := r.post(t, path, fmt.Sprintf(`{"stream":%t,`+body+`}`, stream, most))
				require.Equal(t, 200, status, said)
				require.False(t, strings.Contains(said, "tool_call>") || strings.Contains(said, `{\"name`) || strings.Contains(said, `"text":"<`),
					"%d tokens of %s: %s", most, path, said)
			}
		}
	}
}
