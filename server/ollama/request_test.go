package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

func testModel(name string) (*answer.Model, *wire.Fault) {
	m := &answer.Model{
		Name: "demo", Sampling: sample.Defaults(), Vocab: 512, Context: 100, Width: 8,
		Habits: chat.Habits{Roles: []string{"system", "user", "assistant", "tool"}}, EndTokens: []int32{2},
		Breakers: func([]string) *sample.Breakers { return sample.NewBreakers(nil) },
	}
	if name == "coder" {
		m.Fill = func(_ []token.Snippet, before, after string, _ func() bool) ([]int32, error) {
			return []int32{int32(len(before)), int32(len(after))}, nil
		}
	}
	return m, nil
}

func read(parse func(answer.Body, decode.Finder) (request, *wire.Fault), text string) (request, *wire.Fault) {
	return parse(answer.NewBody(context.Background(), text), testModel)
}

const hi = `"messages":[{"role":"user","content":"Hi"}]`

func spelled(t *testing.T, v jsontext.Value) string {
	text, err := chat.ToJSON(v)
	require.NoError(t, err)
	return string(text)
}

func TestDecodeChat(t *testing.T) {
	o, fault := read(decodeChat, `{`+hi+`,"model":"any","stream":false,"think":"max","keep_alive":"5m","logprobs":true,"top_logprobs":3,
		"format":{"type":"object"},"tools":[{"type":"function","function":{"name":"f"}}],"unknown":1,"truncate":true,
		"options":{"seed":7,"temperature":0.5,"top_k":3,"top_p":0.25,"min_p":0.125,"typical_p":0.5,"repeat_last_n":9,
		"repeat_penalty":1.5,"presence_penalty":2,"frequency_penalty":1,"stop":["a","b"],"num_predict":5,"num_ctx":4096,
		"num_keep":4,"num_batch":2,"num_gpu":1,"main_gpu":0,"use_mmap":true,"num_thread":8,"penalize_newline":true}}`)
	require.Nil(t, fault)
	r := o.Prompts[0]
	require.True(t, !o.Stream && o.idle == "" && r.Thoughts && r.Chat.AddGenerationPrompt)
	require.NotNil(t, r.Form)
	require.NotNil(t, r.Chat.Tools)
	require.Equal(t, []string{"a", "b"}, r.Stop)
	require.Equal(t, []int{5, 1, 4096}, []int{r.MaxTokens, o.N, r.Context})
	require.True(t, r.Trims)
	want := sample.Defaults()
	want.Seed, want.Temp, want.TopK, want.TopP, want.MinP = 7, 0.5, 3, 0.25, 0.125
	want.TypicalP, want.PenaltyLastN = 0.5, 9
	want.RepeatPenalty, want.PresencePenalty, want.FrequencyPenalty, want.LogProbs = 1.5, 2, 1, 3
	require.Equal(t, want, r.Sampling)
	require.Equal(t, `{"reasoning_effort": "high", "thinking_effort": "high", "enable_thinking": true, `+
		`"thinking": true, "thinking_mode": "enabled"}`, spelled(t, r.Chat.Extra))

	plain, fault := read(decodeChat, `{`+hi+`,"options":{"num_predict":-2}}`)
	require.Nil(t, fault)
	r = plain.Prompts[0]
	require.True(t, plain.Stream, "it streams unless told otherwise")
	require.Equal(t, []int{0, -1}, []int{r.MaxTokens, r.Sampling.LogProbs})
	require.Equal(t, "{}", spelled(t, r.Chat.Extra), "whether to think is the template's to decide")
	again, _ := read(decodeChat, `{`+hi+`}`)
	require.NotEqual(t, r.Sampling.Seed, again.Prompts[0].Sampling.Seed)
	off, _ := read(decodeChat, `{`+hi+`,"think":false}`)
	require.Equal(t, `{"enable_thinking": false, "thinking": false, "thinking_mode": "disabled"}`, spelled(t, off.Prompts[0].Chat.Extra))
}

// TestMessages: messages reach the template with the names that templates know.
func TestMessages(t *testing.T) {
	const calls = `"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]`
	known := func(id, name string) string {
		return `"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":{"a":1}}}]`
	}
	for _, c := range []struct {
		messages, want string
		goesOn         bool
	}{
		{`{"role":"user","content":"Hi","images":[]}`, `{"role":"user","content":"Hi","images":[]}`, false},
		{`{"role":"user","content":"Hi"},{"role":"assistant","content":"Well,"}`,
			`{"role":"user","content":"Hi"},{"role":"assistant","content":"Well,"}`, true},
		{`{"role":"user"},{"role":"user","content":null}`, `{"role":"user","content":""},{"role":"user","content":""}`, false},
		{`{"role":"assistant","content":"","reasoning_content":"So","thinking":"Hm"}`,
			`{"role":"assistant","content":"","reasoning_content":"Hm","thinking":"Hm"}`, false},
		{`{"role":"assistant","content":" "}`, `{"role":"assistant","content":" "}`, false},
		{`{"role":"assistant","thinking":"Hm",` + calls + `},{"role":"tool","content":"21","tool_name":"f"}`,
			`{"role":"assistant","thinking":"Hm",` + known("call00000", "f") + `,"content":"","reasoning_content":"Hm"},
			{"role":"tool","content":"21","tool_name":"f","tool_call_id":"call00000","name":"f"}`, false},
		{`{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":{"a":1}}}]},
			{"role":"assistant",` + calls + `},{"role":"tool","content":"1"},{"role":"tool","content":"2","tool_call_id":"call00000"}`,
			`{"role":"assistant","content":"",` + known("x", "f") + `},{"role":"assistant","content":"",` + known("call00000", "f") + `},
			{"role":"tool","content":"1","tool_call_id":"x","name":"f"},{"role":"tool","content":"2","tool_call_id":"call00000","name":"f"}`, false},
		{`{"role":"assistant",` + calls + `},{"role":"assistant",` + calls + `},{"role":"tool","content":"1","tool_name":"f"},
			{"role":"tool","content":"2","tool_name":"f"}`,
			`{"role":"assistant","content":"",` + known("call00000", "f") + `},{"role":"assistant","content":"",` + known("call00001", "f") + `},
			{"role":"tool","content":"1","tool_name":"f","tool_call_id":"call00000","name":"f"},
			{"role":"tool","content":"2","tool_name":"f","tool_call_id":"call00001","name":"f"}`, false},
		{`{"role":"assistant",` + calls + `},{"role":"tool","content":"1","tool_call_id":"y"},
			{"role":"tool","content":"2","tool_name":"g"},{"role":"tool","content":"3"}`,
			`{"role":"assistant","content":"",` + known("call00000", "f") + `},
			{"role":"tool","content":"1","tool_call_id":"y","name":""},
			{"role":"tool","content":"2","tool_name":"g","tool_call_id":"","name":"g"},
			{"role":"tool","content":"3","tool_call_id":"call00000","name":"f"}`, false},
		{`{"role":"tool","content":"1","tool_name":"g"}`, `{"role":"tool","content":"1","tool_name":"g","tool_call_id":"","name":"g"}`, false},
		{`{"role":"assistant","content":"x","tool_calls":[5]}`, `{"role":"assistant","content":"x","tool_calls":[5]}`, false},
	} {
		o, fault := read(decodeChat, `{"messages":[`+c.messages+`]}`)
		require.Nil(t, fault, c.messages)
		in := o.Prompts[0].Chat
		got, err := json.Marshal(in.Messages)
		require.NoError(t, err)
		require.JSONEq(t, "["+c.want+"]", string(got))
		require.Equal(t, []bool{c.goesOn, !c.goesOn}, []bool{in.ContinueFinalMessage, in.AddGenerationPrompt}, c.messages)
	}
}

func TestDecodeGenerate(t *testing.T) {
	get := func(text string) request {
		o, fault := read(decodeGenerate, text)
		require.Nil(t, fault, text)
		return o
	}
	r := get(`{"prompt":"Hi","system":"Be brief.","think":true,"template":"","context":[],"images":[]}`).Prompts[0]
	got, err := json.Marshal(r.Chat.Messages)
	require.NoError(t, err)
	require.JSONEq(t, `[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]`, string(got))
	require.True(t, r.Thoughts && r.Chat.AddGenerationPrompt)
	require.Equal(t, `{"enable_thinking": true, "thinking": true, "thinking_mode": "enabled"}`, spelled(t, r.Chat.Extra))
	r = get(`{"prompt":"<s>Hi","raw":true,"format":"json"}`).Prompts[0]
	require.Equal(t, "<s>Hi", r.Text)
	require.True(t, r.Chat == nil && !r.Thoughts && r.Form != nil)
	require.Equal(t, []int32{2, 3}, get(`{"model":"coder","prompt":"ab","suffix":"cde"}`).Prompts[0].Tokens)
}

// TestIdle: a request without a question loads or unloads a model, which is there all the same.
func TestIdle(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "load", `{"keep_alive":-1}`: "load", `{"keep_alive":0}`: "unload", `{"keep_alive":"0s"}`: "unload",
		`{"keep_alive":"0","prompt":"","messages":[]}`: "unload", `{"keep_alive":"10m"}`: "load", `{"keep_alive":"300"}`: "load",
	} {
		for _, parse := range []func(answer.Body, decode.Finder) (request, *wire.Fault){decodeChat, decodeGenerate} {
			o, fault := read(parse, text)
			require.Nil(t, fault, text)
			require.Equal(t, want, o.idle, text)
			require.Empty(t, o.Prompts)
		}
	}
	o, _ := read(decodeChat, `{`+hi+`,"keep_alive":0}`)
	require.Empty(t, o.idle, "a question is answered first")
}

// faults are requests with one thing wrong.
var faults = []struct{ chat, body, param, text string }{
	{"c", `{` + hi + `,"format":"yaml"}`, "format", `format is "yaml": want "json" or a JSON Schema`},
	{"c", `{` + hi + `,"format":5}`, "format", `format is 5: want a string`},
	{"c", `{` + hi + `,"think":"deep"}`, "think", `think is "deep": want true, false, "low", "medium", "high" or "max"`},
	{"c", `{` + hi + `,"keep_alive":"soon"}`, "keep_alive", `keep_alive is "soon": want seconds, or a duration such as "5m"`},
	{"c", `{` + hi + `,"options":{"top_p":2}}`, "options.top_p", `options.top_p is 2: want a number from 0 to 1`},
	{"c", `{` + hi + `,"options":[]}`, "options", `options is []: want an object`},
	{"c", `{` + hi + `,"stream":"no"}`, "stream", `stream is "no": want true or false`},
	{"c", `{` + hi + `,"tools":[1]}`, "tools", `tools[0] is no object`},
	{"c", `{"messages":"Hi"}`, "messages", `messages: want a list`},
	{"c", `{"messages":[5]}`, "messages", `messages[0]: want an object`},
	{"c", `{"messages":[{"role":"wizard","content":"Hi"}]}`, "messages[0].role", `messages[0].role is "wizard"`},
	{"c", `{"messages":[{"role":"user","images":["x"]}]}`, "messages[0].images", `messages[0].images: this model reads text only`},
	{"c", `{"messages":[{"role":"user","images":"x"}]}`, "messages[0].images", `messages[0].images: this model reads text only`},
	{"", `{"prompt":"Hi","images":["x"]}`, "images", `images: this model reads text only`},
	{"", `{"prompt":"Hi","template":"{{ .Prompt }}"}`, "template", `template is not supported here: prompts are made by the model's own`},
	{"", `{"prompt":"Hi","context":"x"}`, "context", `context is "x": want the list of numbers that an earlier answer gave`},
	{"", `{"prompt":"Hi","context":[-1]}`, "context", `token 0 of the context is -1`},
	{"", `{"prompt":"Hi","context":[1],"raw":true}`, "context", `context has no place in a raw prompt`},
	{"", `{"prompt":"Hi","raw":true,"system":"S"}`, "system", `system has no place in a raw prompt`},
	{"", `{"prompt":"Hi","suffix":"x"}`, "suffix", `suffix: the model demo has no tokens for a gap`},
	{"", `{"prompt":5}`, "prompt", `prompt is 5: want a string`},
	{"", `{"model":`, "", `is it complete?`},
}

func TestFaults(t *testing.T) {
	for _, c := range faults {
		parse := decodeGenerate
		if c.chat != "" {
			parse = decodeChat
		}
		_, fault := read(parse, c.body)
		require.NotNil(t, fault, c.body)
		require.Contains(t, fault.Text, c.text, c.body)
		require.Equal(t, c.param, fault.Param, c.body)
		require.Equal(t, 400, fault.Status)
	}
	many := `{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, answer.MaxMessages) + `{"role":"user","content":"x"}]}`
	_, fault := read(decodeChat, many)
	require.NotNil(t, fault)
	require.Contains(t, fault.Text, "more than 4096 entries")
}

func TestDecodeEmbed(t *testing.T) {
	parse := func(text string) (*answer.Reading, *wire.Fault) {
		return decodeEmbed(answer.NewBody(context.Background(), text), testModel)
	}
	for text, want := range map[string]int{`{"input":"a"}`: 1, `{"input":["a","b"]}`: 2, `{"input":""}`: 0, `{"input":[]}`: 0, `{}`: 0} {
		o, fault := parse(text)
		require.Nil(t, fault, text)
		require.Len(t, o.Texts, want, text)
		require.Equal(t, 8, o.Unit)
	}
	o, fault := parse(`{"input":"a","dimensions":3,"keep_alive":"1m","options":{},"truncate":false}`)
	require.Nil(t, fault)
	require.Equal(t, 3, o.Unit)
	for text, want := range map[string]string{
		`{"input":5}`: "input is 5", `{"input":"a","dimensions":9}`: "dimensions is 9: want an integer from 0 to 8",
		`{"input":"a","keep_alive":"x"}`: "keep_alive", `{"input":"a","options":1}`: "options is 1",
	} {
		_, fault := parse(text)
		require.NotNil(t, fault, text)
		require.Contains(t, fault.Text, want)
	}
	one, fault := decodeEmbedOne(answer.NewBody(context.Background(), `{"prompt":"a"}`), testModel)
	require.Nil(t, fault)
	require.Equal(t, []answer.Text{{Text: "a"}}, one.Texts)
}

func FuzzChat(f *testing.F) { fuzz(f, decodeChat, "c") }

func FuzzGenerate(f *testing.F) { fuzz(f, decodeGenerate, "") }

// fuzz: whatever comes, it is an order that keeps all limits, nothing, or a fault with a text.
func fuzz(f *testing.F, parse func(answer.Body, decode.Finder) (request, *wire.Fault), which string) {
	for _, c := range faults {
		if c.chat == which {
			f.Add(c.body)
		}
	}
	f.Add(`{` + hi + `,"prompt":"Hi","think":"low","keep_alive":"0","format":{"const":1},"options":{"stop":"x","num_predict":3}}`)
	m, _ := testModel("")
	f.Fuzz(func(t *testing.T, text string) {
		o, fault := read(parse, text)
		if fault != nil {
			require.NotEmpty(t, fault.Text)
			require.Less(t, len(fault.Text), 4096)
			require.True(t, json.Valid(appendFault(nil, fault)))
			return
		}
		require.NotEqual(t, o.idle == "", len(o.Prompts) == 0)
		for _, r := range o.Prompts {
			require.GreaterOrEqual(t, r.MaxTokens, 0)
			require.LessOrEqual(t, len(r.Stop), answer.MaxStops)
			require.NoError(t, r.Sampling.Check(m.Vocab), fmt.Sprintf("%q", text))
			if r.Chat != nil {
				require.NotEqual(t, r.Chat.AddGenerationPrompt, r.Chat.ContinueFinalMessage)
				require.LessOrEqual(t, len(r.Chat.Messages), answer.MaxMessages)
			}
		}
	})
}

func FuzzEmbed(f *testing.F) {
	f.Add(`{"input":["a",[1,2]],"dimensions":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, fault := decodeEmbed(answer.NewBody(context.Background(), text), testModel)
		if fault != nil {
			require.NotEmpty(t, fault.Text)
			return
		}
		require.LessOrEqual(t, len(o.Texts), answer.MaxTexts)
		require.True(t, o.Unit >= 1 && o.Unit <= o.Model.Width)
	})
}
