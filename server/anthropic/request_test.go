package anthropic

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

func testModel(string) (*answer.Model, *wire.Fault) {
	return &answer.Model{Name: "demo", Habits: chat.Habits{Roles: []string{"system", "user", "assistant", "tool"}}}, nil
}

func read(text string) (request, *wire.Fault) {
	return parse(answer.NewBody(context.Background(), text), testModel, true)
}

const hi = `"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]`

func TestDecode(t *testing.T) {
	o, fault := read(`{` + hi + `,"model":"any","stream":true,"stop_sequences":["a","b"],"temperature":0.5,"top_p":0.25,"top_k":3,
		"metadata":{"user_id":"u"},"service_tier":"auto","cache_control":{"type":"ephemeral"},"unknown":[1],
		"thinking":{"type":"enabled","budget_tokens":2048,"display":"omitted"},"output_config":{"effort":"max",
		"format":{"type":"json_schema","schema":{"type":"object"}}}}`)
	require.Nil(t, fault)
	r := o.Prompts[0]
	require.True(t, o.Stream && o.omit && r.Thoughts && r.Chat.AddGenerationPrompt && !r.Chat.ContinueFinalMessage)
	require.NotNil(t, r.Form)
	require.Equal(t, []string{"a", "b"}, r.Stop)
	require.Equal(t, []int{5, 5, 1, 2048}, []int{o.most, r.MaxTokens, o.N, r.MostThoughts})
	p := r.Sampling
	require.Equal(t, []float32{0.5, 0.25, 3, -1}, []float32{p.Temp, p.TopP, float32(p.TopK), float32(p.LogProbs)})
	require.Equal(t, `{"enable_thinking": true, "thinking": true, "thinking_mode": "enabled", `+
		`"reasoning_effort": "high", "thinking_effort": "high"}`, spelled(t, r.Chat.Extra))
	again, _ := read(`{` + hi + `}`)
	require.NotEqual(t, p.Seed, again.Prompts[0].Sampling.Seed)
	require.Equal(t, `{"enable_thinking": false, "thinking": false, "thinking_mode": "disabled"}`, spelled(t, again.Prompts[0].Chat.Extra))
	require.Nil(t, again.Prompts[0].Form)
}

func spelled(t *testing.T, v jsontext.Value) string {
	text, err := chat.ToJSON(v)
	require.NoError(t, err)
	return string(text)
}

// TestConversation: blocks become the messages that templates know.
func TestConversation(t *testing.T) {
	const call = `{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}`
	const called = `{"id":"t1","type":"function","function":{"name":"f","arguments":{"a":1}}}`
	for _, c := range []struct{ request, want string }{
		{`"messages":[{"role":"user","content":"Hi"}]`, `{"role":"user","content":"Hi"}`},
		{`"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]}]`,
			`{"role":"system","content":"S"},{"role":"user","content":"a\nb"}`},
		{`"system":[{"type":"text","text":"S"},{"type":"text","text":"T"}],"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]`,
			`{"role":"system","content":"S\nT"},{"role":"user","content":"a\nb"}`},
		{`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"It is late."},"title":"News"},
			{"type":"text","text":"What is it?"}]}]`, `{"role":"user","content":"News\n\nIt is late.\nWhat is it?"}`},
		{`"system":[],"messages":[{"role":"user","content":"a"}]`, `{"role":"user","content":"a"}`},
		{`"system":"","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`,
			`{"role":"user","content":"a"},{"role":"assistant","content":"b"}`},
		{`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":""},{"type":"thinking","thinking":"Hm","signature":"s"},
			{"type":"redacted_thinking","data":"x"},{"type":"text","text":"See:"},` + call + `]},{"role":"user","content":[{"type":"text","text":"b"},
			{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r"}]},{"type":"tool_result","tool_use_id":"t1"},
			{"type":"text","text":"c"}]}]`,
			`{"role":"user","content":"a"},{"role":"assistant","content":"See:","reasoning_content":"Hm","tool_calls":[` + called + `]},` +
				`{"role":"user","content":"b"},{"role":"tool","tool_call_id":"t1","name":"f","content":"r"},` +
				`{"role":"tool","tool_call_id":"t1","name":"f","content":""},{"role":"user","content":"c"}`},
	} {
		o, fault := read(`{"max_tokens":5,` + c.request + `}`)
		require.Nil(t, fault, c.request)
		in := o.Prompts[0].Chat
		got, err := json.Marshal(in.Messages)
		require.NoError(t, err)
		require.JSONEq(t, "["+c.want+"]", string(got))
		last := strings.Contains(c.request, `"content":"b"}]`) && strings.Contains(c.request, "assistant")
		require.Equal(t, last, in.ContinueFinalMessage, "the last message is gone on with if it is the assistant's")
		require.Equal(t, !last, in.AddGenerationPrompt)
	}
}

func TestTools(t *testing.T) {
	const tools = `,"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"custom","name":"g","input_schema":{},"strict":true}]`
	const want = `[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},` +
		`{"type":"function","function":{"name":"g","parameters":{}}}]`
	for choice, given := range map[string]bool{"": true, `,"tool_choice":{"type":"auto"}`: true, `,"tool_choice":{"type":"none"}`: false} {
		o, fault := read(`{` + hi + tools + choice + `}`)
		require.Nil(t, fault)
		if !given {
			require.Nil(t, o.Prompts[0].Chat.Tools)
			continue
		}
		require.JSONEq(t, want, spelled(t, o.Prompts[0].Chat.Tools))
	}
}

func TestRefused(t *testing.T) {
	message := func(m string) string { return `"max_tokens":5,"messages":[{"role":"user","content":"a"},` + m + `]` }
	for request, want := range map[string]string{
		`"messages":[{"role":"user","content":"Hi"}]`: "max_tokens is missing",
		`"max_tokens":5`:                                                    "messages is missing",
		`"max_tokens":5,"messages":[]`:                                      "messages is empty",
		`"max_tokens":0,"messages":[]`:                                      "max_tokens is 0: want an integer from 1",
		message(`{"role":"wizard","content":"x"}`):                          `messages[1].role is "wizard"`,
		message(`{"content":"x"}`):                                          `messages[1].role is "empty"`,
		message(`{"role":"user"}`):                                          "messages[1].content is missing or empty",
		message(`{"role":"user","content":[]}`):                             "messages[1].content is missing or empty",
		message(`{"role":"user","content":5}`):                              "messages[1].content is missing or empty",
		message(`5`):                                                        "messages[1]: want an object",
		message(`{"role":"user","content":[5]}`):                            `messages[1].content[0].type is "empty"`,
		message(`{"role":"user","content":[{"type":"nope"}]}`):              `messages[1].content[0].type is "nope"`,
		message(`{"role":"user","content":[{"type":"image","source":{}}]}`): `messages[1].content[0].type is "image"`,
		message(`{"role":"user","content":[{"type":"document","source":{"type":"url","url":"x"}}]}`): `messages[1].content[0].type is "document": this model reads text only`,
		message(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"document"}]}`):        `messages[1].content[1].type is "document": this model reads text only`,
		`"max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"n","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"image"}]}]}]`: `messages[2].content[0].content[0].type is "image": this model reads text only`,
		message(`{"role":"user","content":[{"type":"text"}]}`):                                                                    "messages[1].content[0].text: want a string",
		message(`{"role":"user","content":[{"type":"tool_use","id":"i","name":"n"}]}`):                                            `type is "tool_use" in a message of the user`,
		message(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"i"}]}`):                                           `tool_use_id is "i": no tool_use before`,
		message(`{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"n"}]}`):                                       "an object as input",
		message(`{"role":"assistant","content":[{"type":"tool_use","name":"n","input":{}}]}`):                                     "needs an id",
		message(`{"role":"assistant","content":[{"type":"image"}]}`):                                                              `messages[1].content[0].type is "image": this model reads text only`,
		message(`{"role":"user","content":[{"type":"thinking","thinking":"x"}]}`):                                                 `type is "thinking" in a message of the user`,
		message(`{"role":"assistant","content":" "}`):                                                                             "has no text to go on with",
		message(`{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"i","name":"n","input":{}}]}`): "no text to go on with",
		hi + `,"system":5`:                                "system is missing or empty",
		hi + `,"system":[{"type":"image"}]`:               `system[0].type is "image"`,
		hi + `,"thinking":{"type":"perhaps"}`:             `thinking.type is "perhaps"`,
		hi + `,"thinking":{"type":"enabled","display":1}`: "thinking.display is 1",
		hi + `,"tool_choice":{"type":"any"}`:              `tool_choice wants a call, but there are no tools`,
		hi + `,"tool_choice":{"type":"perhaps"}`:          `tool_choice.type is "perhaps": want "auto", "any", "tool" or "none"`,
		hi + `,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"g"}`: `tool_choice wants a call of "g"`,
		hi + `,"tools":{}`:                 "tools is {}: want a list",
		hi + `,"thread":{"type":"create"}`: "send the whole of it without thread",
		hi + `,"tools":[5]`:                "tools[0].name: want a text",
		hi + `,"tools":[{"name":"f"}]`:     "tools[0].input_schema: want an object",
		hi + `,"tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{}}]`: `tools[1].name is "f", as another`,
		hi + `,"output_config":{"format":{"type":"regex"}}`:                             `output_config.format.type is "regex"`,
		hi + `,"output_config":{"format":{"type":"json_schema"}}`:                       "output_config.format.schema is missing: want a JSON Schema",
		hi + `,"output_config":{"effort":"most"}`:                                       `output_config.effort is "most"`,
		hi + `,"stop_sequences":[""]`:                                                   "stop_sequences: entry 0 has 0 bytes",
		hi + `,"container":"c"`:                                                         "container is not supported here",
		hi + `,"metadata":5`:                                                            "metadata is 5",
		hi + `,"temperature":-1`:                                                        "temperature is -1",
	} {
		_, fault := read(`{` + request + `}`)
		require.NotNil(t, fault, request)
		require.Contains(t, fault.Text, want, request)
		require.Equal(t, 400, fault.Status, request)
	}
	_, fault := parse(answer.NewBody(context.Background(), `{"messages":[{"role":"user","content":"Hi"}]}`), testModel, false)
	require.Nil(t, fault, "what is only counted has no length")
}

// FuzzDecode: whatever comes, it is an order that can be spelled again or a fault with a text.
func FuzzDecode(f *testing.F) {
	f.Add(`{` + hi + `}`)
	f.Add(`{"max_tokens":5,"system":[{"type":"text","text":"S"}],"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t",
		"name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[]}]}],"tools":[{"name":"f",
		"input_schema":{}}],"tool_choice":{"type":"auto"},"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, fault := read(text)
		if fault != nil {
			require.NotEmpty(t, fault.Text)
			return
		}
		in := o.Prompts[0].Chat
		require.NotEqual(t, in.AddGenerationPrompt, in.ContinueFinalMessage)
		for _, m := range in.Messages {
			text, err := json.Marshal(m)
			require.NoError(t, err)
			require.True(t, json.Valid(text))
		}
	})
}
