package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
)

// forgotten is where no conversation is kept.
func forgotten(string) (string, bool) { return "", false }

func TestDecodeResponse(t *testing.T) {
	o, fault := decodeResponse(given(`{"input":"Hi","instructions":"Be brief.","stream":true,"max_output_tokens":7,"temperature":0.5,
		"top_p":0.25,"seed":3,"stop":"x","store":true,"truncation":"auto","user":"u","parallel_tool_calls":true,
		"reasoning":{"effort":"xhigh","summary":"auto"},"metadata":{ "a" : "b" },"include":["reasoning.encrypted_content"],
		"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}}},
		"tools":[{"type":"function","name":"f","description":null,"parameters":{"type":"object"},"strict":true}],
		"previous_response_id":null,"background":false}`), testModel, forgotten, false)
	require.Nil(t, fault)
	r := o.Prompts[0]
	require.True(t, o.Stream && o.Repeats && r.Thoughts && r.Chat.AddGenerationPrompt)
	require.NotNil(t, r.Form)
	require.Equal(t, []int{7, 7, 1}, []int{o.most, r.MaxTokens, o.N})
	require.Equal(t, []string{"xhigh", "json_schema", "n", `{"a":"b"}`}, []string{o.effort, o.format, o.name, o.metadata})
	want := sample.Defaults()
	want.Seed, want.Temp, want.TopP, want.LogProbs = 3, 0.5, 0.25, -1
	require.Equal(t, want, r.Sampling)
	require.Equal(t, "high", r.Chat.Extra.Text("reasoning_effort"))
	tools, err := chat.ToJSON(r.Chat.Tools)
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`, string(tools))

	for body, probs := range map[string]int{`"top_logprobs":3`: 3, `"include":["message.output_text.logprobs"]`: 0, `"include":[]`: -1} {
		o, fault := decodeResponse(given(`{"input":"Hi",`+body+`}`), testModel, forgotten, false)
		require.Nil(t, fault, body)
		require.Equal(t, probs, o.Prompts[0].Sampling.LogProbs, body)
	}
	off, fault := decodeResponse(given(`{"input":"Hi","reasoning":{"effort":"none"}}`), testModel, forgotten, false)
	require.Nil(t, fault)
	require.Equal(t, jsontext.Bool(false), off.Prompts[0].Chat.Extra.Get("enable_thinking"))
	require.Zero(t, off.Prompts[0].MaxTokens)
}

// TestItems: items become the messages that templates know.
func TestItems(t *testing.T) {
	const call = `{"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{\"a\":1}","status":"completed"}`
	const called = `"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"a":1}}}]`
	for input, want := range map[string]string{
		`"Hi"`: `{"role":"user","content":"Hi"}`,
		`[{"role":"developer","content":"D"},{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},
			{"role":"assistant","content":[{"type":"output_text","text":"c","annotations":[]},{"type":"refusal","refusal":"d"}]}]`: `{"role":"system","content":"D"},{"role":"user","content":"a\nb"},
			{"role":"assistant","content":"c\nd"}`,
		`[{"role":"user","content":"a"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]},{"role":"assistant",
			"content":"See:"},` + call + `,{"type":"function_call_output","call_id":"c1","output":"r"},{"role":"user","content":"b"}]`: `{"role":"user","content":"a"},{"role":"assistant","content":"See:","reasoning_content":"Hm",` + called + `},
			{"role":"tool","tool_call_id":"c1","name":"f","content":"r"},{"role":"user","content":"b"}`,
		`[{"type":"reasoning","summary":[{"type":"summary_text","text":"So"}]},` + call + `,{"type":"function_call_output","call_id":"c1",
			"output":[{"type":"input_text","text":"r"}]}]`: `{"role":"assistant","content":"","reasoning_content":"So",` + called + `},
			{"role":"tool","tool_call_id":"c1","name":"f","content":"r"}`,
	} {
		o, fault := decodeResponse(given(`{"input":`+input+`}`), testModel, forgotten, false)
		require.Nil(t, fault, input)
		got, err := json.Marshal(o.Prompts[0].Chat.Messages)
		require.NoError(t, err)
		require.JSONEq(t, "["+want+"]", string(got))
	}
	o, fault := decodeResponse(given(`{"instructions":"S","input":[{"role":"developer","content":"D"},{"role":"user","content":"a"}]}`), testModel, forgotten, false)
	require.Nil(t, fault)
	require.Equal(t, "S\nD", o.Prompts[0].Chat.Messages[0].Text(), "templates have one system message")
}

// responseFaults are requests with one thing wrong.
var responseFaults = []struct{ body, param, text string }{
	{`{}`, "input", `input is missing: want a string, or a list such as [{"role": "user", "content": "..."}]`},
	{`{"input":5}`, "input", `input is 5: want a string`},
	{`{"input":[]}`, "input", `input is []: want a string`},
	{`{"input":[{"role":"user","content":[]}]}`, "input", `input says nothing: want a string`},
	{`{"input":[5]}`, "input[0]", `input[0]: want an object`},
	{`{"input":[{"type":"nope"}]}`, "input[0].type", `input[0].type is "nope": want messages`},
	{`{"input":[{"type":"item_reference","id":"x"}]}`, "input[0].type", `input[0].type is "item_reference"`},
	{`{"input":[{"role":"wizard","content":"x"}]}`, "input[0].role", `input[0].role is "wizard": want "user"`},
	{`{"input":[{"role":"user"}]}`, "input[0].content", `input[0].content is missing`},
	{`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`, "input[0].content",
		`input[0].content[0].type is "input_image": this model reads text only`},
	{`{"input":[{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_file"}]}]}`,
		"input[1].output", `input[1].output[0].type is "input_file": this model reads text only`},
	{`{"input":[{"type":"reasoning","content":[{"type":"thinking"}]}]}`, "input[0].content",
		`input[0].content[0].type is "thinking": this model reads text only`},
	{`{"input":[{"type":"function_call","name":"f"}]}`, "input[0]", `input[0]: a function_call needs a call_id and a name`},
	{`{"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, "input[0].call_id",
		`input[0].call_id is "c": no function_call before it has that id`},
	{`{"input":"a","max_output_tokens":0}`, "max_output_tokens", `max_output_tokens is 0: want an integer from 1`},
	{`{"input":"a","previous_response_id":"resp_1"}`, "previous_response_id",
		`previous_response_id is "resp_1": no such answer of yours is kept (any more): send the whole conversation as input`},
	{`{"input":"a","conversation":"c"}`, "conversation", `conversation is not supported here`},
	{`{"input":"a","background":true}`, "background", `background is not supported here`},
	{`{"input":"a","prompt":{"id":"p"}}`, "prompt", `prompt is not supported here`},
	{`{"input":"a","text":{"format":{"type":"yaml"}}}`, "text.format.type", `text.format.type is "yaml": want {"type": "text"}`},
	{`{"input":"a","text":{"format":{"type":"json_schema"}}}`, "text.format.schema", `text.format.schema is missing: want format as`},
	{`{"input":"a","text":{"format":{"type":"text","name":"` + strings.Repeat("x", 65) + `"}}}`, "text.format.name",
		`text.format.name has 65 bytes: want at most 64`},
	{`{"input":"a","reasoning":{"effort":"much"}}`, "reasoning.effort", `reasoning.effort is "much"`},
	{`{"input":"a","metadata":5}`, "metadata", `metadata is 5`},
	{`{"input":"a","metadata":{"a":"` + strings.Repeat("x", maxMetadata) + `"}}`, "metadata", `metadata has 16392 bytes: want at most 16384`},
	{`{"input":"a","tools":[{"name":"f"}]}`, "tools[0].type", `tools[0].type is missing: want "function"`},
	{`{"input":"a","tools":[{"type":"namespace","tools":[{"type":"function"}]}]}`, "tools[0].tools[0].name",
		`tools[0].tools[0].name: want a text`},
	{`{"input":"a","tools":[{"type":"function"}]}`, "tools[0].name", `tools[0].name: want a text`},
	{`{"input":"a","tools":[5]}`, "tools", `tools[0] is no object`},
	{`{"input":"a","tool_choice":"required"}`, "tool_choice", `tool_choice wants a call, but there are no tools`},
	{`{"input":"a","tool_choice":"perhaps"}`, "tool_choice", `tool_choice is "perhaps"`},
	{`{"input":"a","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}}`, "tool_choice",
		`tool_choice wants a call of "g"`},
}

func TestResponseFaults(t *testing.T) {
	for _, c := range responseFaults {
		_, fault := decodeResponse(given(c.body), testModel, forgotten, false)
		require.NotNil(t, fault, c.body)
		require.Contains(t, fault.Text, c.text, c.body)
		require.Equal(t, c.param, fault.Param, c.body)
		require.Equal(t, 400, fault.Status)
	}
	many := `{"input":[` + strings.Repeat(`{"role":"user","content":"x"},`, answer.MaxMessages) + `{"role":"user","content":"x"}]}`
	_, fault := decodeResponse(given(many), testModel, forgotten, false)
	require.NotNil(t, fault)
	require.Contains(t, fault.Text, "input has more than 4096 items")
}

// FuzzResponseRequest: whatever comes, it is an order that keeps all limits or a fault with a text.
func FuzzResponseRequest(f *testing.F) {
	for _, c := range responseFaults {
		f.Add(c.body)
	}
	f.Add(`{"instructions":"S","input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"c","output":"x"}],"reasoning":{"effort":"low"},"metadata":{"a":1}}`)
	f.Add(`{"previous_response_id":"r","input": [ {"type":"function_call_output","call_id":"c1","output":"x"} , {"role":"user","content":""}]}`)
	m, _ := testModel("")
	before := func(string) (string, bool) {
		return `{"role":"user","content":"a"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, true
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, fault := decodeResponse(given(text), testModel, before, false)
		if fault != nil {
			require.NotEmpty(t, fault.Text)
			require.Less(t, len(fault.Text), 4096)
			return
		}
		r := o.Prompts[0]
		require.NoError(t, r.Sampling.Check(m.Vocab))
		require.True(t, json.Valid([]byte(o.metadata)) && !strings.Contains(o.metadata, "\n"))
		require.LessOrEqual(t, len(o.metadata)+len(o.name)+len(o.effort), maxMetadata+maxName+maxName)
		require.NotEmpty(t, r.Chat.Messages)
		require.LessOrEqual(t, len(r.Chat.Messages), answer.MaxMessages+1)
		_, fault = decodeResponse(given(`{"previous_response_id":"r","input":"b"}`), testModel,
			func(string) (string, bool) { return o.items, true }, false)
		require.Nil(t, fault, "what was taken can be gone on with: %s", o.items)
	})
}

func testResponse() *response {
	o := &responseRequest{Order: answer.Order{Model: &answer.Model{Name: "demo"}}, most: 9, format: "text", metadata: "{}"}
	o.Prompts = make([]actors.Request, 1)
	return newResponse(o, "1", 1700000000)
}

// event is what all events of a stream have, and some of them.
type event struct {
	Type   string
	Number int `json:"sequence_number"`
	Delta  string
	Text   string
	Index  int    `json:"output_index"`
	ItemID string `json:"item_id"`

	Arguments string
	Item      map[string]any
	Response  struct {
		Status string
		Output []map[string]any
		Usage  map[string]any
	}
}

// partOf is what a text stands for: thinking behind a question mark, a call behind an exclamation mark.
func partOf(text string) answer.Part {
	if thought, ok := strings.CutPrefix(text, "?"); ok {
		return answer.Part{Kind: answer.Thought, Text: []byte(thought)}
	}
	if call, ok := strings.CutPrefix(text, "!"); ok {
		if name, arguments, ok := strings.Cut(call, "="); ok {
			return answer.Part{Kind: answer.Call, Name: name, ID: "id" + name, Text: []byte(arguments)}
		}
		return answer.Part{Kind: answer.Call, Text: []byte(call)}
	}
	return answer.Part{Text: []byte(text)}
}

// TestResponseStream: items are opened, grow and are closed one after the other; the last event repeats them.
func TestResponseStream(t *testing.T) {
	for _, c := range []struct {
		parts []string // see partOf
		end   actors.Finish
		want  string
	}{
		{[]string{"Hel", "lo\n"}, actors.Stopped, "created in_progress output_item.added content_part.added output_text.delta " +
			"output_text.delta output_text.done content_part.done output_item.done completed"},
		{nil, actors.Stopped, "created in_progress output_item.added content_part.added output_text.done content_part.done " +
			"output_item.done completed"},
		{[]string{"?Hm", "Two"}, actors.Length, "created in_progress output_item.added content_part.added reasoning_text.delta " +
			"reasoning_text.done content_part.done output_item.done output_item.added content_part.added output_text.delta " +
			"output_text.done content_part.done output_item.done incomplete"},
		{[]string{"So", "!f=", "!{\"a\"", "!: 1}", "!g={}"}, actors.Stopped, "created in_progress output_item.added " +
			"content_part.added output_text.delta output_text.done content_part.done output_item.done output_item.added " +
			"function_call_arguments.delta function_call_arguments.delta function_call_arguments.done output_item.done " +
			"output_item.added function_call_arguments.delta function_call_arguments.done output_item.done completed"},
	} {
		e, choice := testResponse(), &answer.Choice{Usage: actors.Usage{Prompt: 10, Cached: 4, Generated: 3}}
		dst, said := e.Begin(nil, choice), map[string]string{}
		for _, p := range c.parts {
			choice.New = answer.News{Parts: []answer.Part{partOf(p)}}
			if choice.New.Parts[0].Name != "" {
				choice.Calls++
			}
			dst = e.Part(dst, choice)
		}
		choice.Finish = c.end
		dst = e.Close(e.End(dst, choice), []*answer.Choice{choice})
		var kinds []string
		var last event
		var items []map[string]any
		for i, text := range strings.Split(strings.TrimSuffix(string(dst), "\n\n"), "\n\n") {
			name, data, _ := strings.Cut(text, "\ndata: ")
			last = event{}
			require.NoError(t, json.Unmarshal([]byte(data), &last), data)
			require.Equal(t, []any{"event: " + last.Type, i}, []any{name, last.Number})
			kind := strings.TrimPrefix(last.Type, "response.")
			kinds = append(kinds, kind)
			said[last.ItemID] += last.Delta
			switch {
			case kind == "output_item.done":
				require.Equal(t, len(items), last.Index)
				items = append(items, last.Item)
			case kind == "output_item.added":
				require.Equal(t, []any{len(items), "in_progress"}, []any{last.Index, last.Item["status"]})
				if last.Item["type"] == "function_call" {
					require.Equal(t, "", last.Item["arguments"])
				} else {
					require.Equal(t, []any{}, last.Item["content"])
				}
			case kind == "function_call_arguments.done":
				require.Equal(t, said[last.ItemID], last.Arguments)
			case strings.HasSuffix(kind, "_text.done"):
				require.Equal(t, said[last.ItemID], last.Text)
			}
		}
		require.Equal(t, c.want, strings.Join(kinds, " "))
		require.Equal(t, items, last.Response.Output)
		require.Equal(t, kinds[len(kinds)-1], last.Response.Status)
		require.Equal(t, last.Response.Status, items[len(items)-1]["status"])
		for _, item := range items {
			if item["type"] == "function_call" {
				name := item["name"].(string)
				require.Equal(t, []any{"id" + name, said[item["id"].(string)]}, []any{item["call_id"], item["arguments"]})
				continue
			}
			content := item["content"].([]any)[0].(map[string]any)
			require.Equal(t, said[item["id"].(string)], content["text"])
		}
		require.Equal(t, []any{10.0, 3.0, 13.0}, []any{last.Response.Usage["input_tokens"], last.Response.Usage["output_tokens"],
			last.Response.Usage["total_tokens"]})
	}
}

// TestWholeResponse: each time it is asked for, it is what a stream ends with.
func TestWholeResponse(t *testing.T) {
	for _, parts := range [][]string{{"Two"}, {"?Hm\n", "Two"}, {"?Hm"}, {}, {"!f={}"}, {"?Hm", "So", "!f={}", "!g={\"a\":1}"}} {
		choice := &answer.Choice{Finish: actors.Stopped, Usage: actors.Usage{Prompt: 10, Generated: 3}, Pondered: 2}
		for _, text := range parts {
			p := partOf(text)
			choice.New.Parts = append(choice.New.Parts, p)
			if p.Name != "" {
				choice.Calls++
			}
		}
		e := testResponse()
		streamed := string(e.End(e.Part(nil, choice), choice))
		_, want, _ := strings.Cut(streamed[strings.LastIndex(streamed, "\ndata: "):], `"response":`)
		require.Contains(t, want, `"reasoning_tokens":2`)
		all := testResponse().Whole([]*answer.Choice{choice})
		for range 2 {
			got := ""
			for piece := range all {
				got += string(piece)
			}
			require.Equal(t, strings.TrimSuffix(want, "}\n\n"), got)
		}
	}
}

// TestWholeProbs: log-probabilities are those of the message.
func TestWholeProbs(t *testing.T) {
	r, text := testResponse(), ""
	choice := &answer.Choice{Finish: actors.Stopped, New: answer.News{Parts: []answer.Part{partOf("?Hm"), partOf("Two")}}}
	for piece := range r.Whole([]*answer.Choice{choice}) {
		text += string(piece)
	}
	require.Contains(t, text, `"text":"Two","annotations":[],"logprobs":[]}]}]`)
	require.True(t, strings.HasSuffix(string(r.content(nil)), "]}"), "what stands behind them is known")
}

func TestResponseBreaks(t *testing.T) {
	e := testResponse()
	e.Begin(nil, &answer.Choice{})
	require.Equal(t, "event: error\ndata: "+`{"type":"error","sequence_number":2,"code":"server_error","message":"no","param":null}`+"\n\n",
		string(e.Fault(nil, wire.Refused(500, "x", "no"))))
	require.Contains(t, string(e.Fault(nil, wire.Invalid("p", "c", "no"))), fmt.Sprintf(`"code":%q,"message":"no","param":%q`, "c", "p"))
}
