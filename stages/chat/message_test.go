package chat_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestMade: a message that was made here has the fields that templates know, in their order.
func TestMade(t *testing.T) {
	object := &jsontext.Object{}
	object.Set("a", jsontext.Number("1.0"))
	for want, m := range map[string]chat.Message{
		`{"role":"user","content":"2+2?"}`: chat.Say("user", "2+2?"),
		`{"role":"","content":""}`:         {},
		`{"role":"assistant","content":"4\n.","reasoning_content":"2+2\n"}`: {Role: "assistant", Parts: []chat.Part{
			{Text: "4"}, {Kind: chat.Thought, Text: "2+2"}, {Text: "."}, {Kind: chat.Thought}}},
		`{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"a":1.0}}},` +
			`{"id":"2","type":"function","function":{"name":"g"}}]}`: {Role: "assistant", Calls: []chat.Call{
			{ID: "1", Name: "f", Arguments: object}, {ID: "2", Name: "g"}}},
		`{"role":"tool","tool_call_id":"1","name":"f","content":"5"}`: {Role: "tool", Parts: []chat.Part{{Text: "5"}},
			Result: chat.Result{Call: "1", Name: "f"}},
		`{"role":"tool","tool_call_id":"","name":"f","content":""}`: {Role: "tool", Result: chat.Result{Name: "f"}},
	} {
		requireMessages(t, want, []chat.Message{m})
	}
}

// typed is what has a type in a message.
func typed(m chat.Message) map[string]any {
	out := map[string]any{}
	for _, p := range m.Parts {
		key := [...]string{"text", "refusal", "thought", "image", "file", "other"}[p.Kind]
		all, _ := out[key].([]any)
		out[key] = append(all, p.Text)
	}
	for _, c := range m.Calls {
		var arguments any
		if c.Arguments != nil {
			text, _ := chat.ToJSON(c.Arguments)
			arguments = string(text)
		}
		all, _ := out["calls"].([]any)
		out["calls"] = append(all, []any{c.ID, c.Name, arguments})
	}
	if m.Role != "" {
		out["role"] = m.Role
	}
	if m.Result != (chat.Result{}) {
		out["result"] = []any{m.Result.Call, m.Result.Name}
	}
	return out
}

// TestTyped: what has a type is found where it has the usual form, and the message is spelled as it came.
func TestTyped(t *testing.T) {
	for given, want := range map[string]string{
		`{}`:                           `{}`,
		`{"role":5,"content":5}`:       `{}`,
		`{"content":null,"role":"x"}`:  `{"role":"x"}`,
		`{"content":[],"role":"user"}`: `{"role":"user"}`,
		`{"content":"","name":"Ann","role":"user","tool_call_id":"1"}`: `{"role":"user","text":[""]}`,
		`{"role":"user","content":[{"type":"text","text":"a","z":1},{"text":"b"},5,{"type":"text"},{"refusal":"no","type":"refusal"},` +
			`{"type":"refusal","text":"c"}]}`: `{"role":"user","text":["a"],"other":["b","","","c"],"refusal":["no"]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"image"},{"type":"input_image"},{"type":"file"},` +
			`{"type":"input_file"},{"type":"document"},{"type":"input_audio"},{"type":"thinking"}]}`: `{"role":"user","image":["","",""],` +
			`"file":["","",""],"other":["",""]}`,
		`{"reasoning_content":"Hm","role":"assistant","content":"a"}`: `{"role":"assistant","thought":["Hm"],"text":["a"]}`,
		`{"reasoning_content":null,"role":"assistant","content":"a"}`: `{"role":"assistant","text":["a"]}`,
		`{"role":"assistant","tool_calls":[{"type":"function","function":{"z":1,"arguments":"{","name":"f"},"index":0,"id":"1"},` +
			`{"function":{"name":"g","arguments":{"a":1.5}}},{"id":7,"function":{"name":8,"arguments":null}},{"function":{}}]}`: `{"role":"assistant",` +
			`"calls":[["1","f","\"{\""],["","g","{\"a\": 1.5}"],["","","null"],["","",null]]}`,
		`{"role":"assistant","tool_calls":[5,{},{"name":"f","arguments":{}},{"function":[]}]}`: `{"role":"assistant",` +
			`"calls":[["","",null],["","",null],["","",null],["","",null]]}`,
		`{"role":"assistant","tool_calls":"f()"}`:             `{"role":"assistant"}`,
		`{"role":"assistant","tool_calls":[]}`:                `{"role":"assistant"}`,
		`{"name":"f","tool_call_id":"1","role":"tool"}`:       `{"role":"tool","result":["1","f"]}`,
		`{"name":"","tool_call_id":7,"role":"tool","z":null}`: `{"role":"tool"}`,
	} {
		all, err := chat.ParseMessages("["+given+"]", 9, nil)
		require.NoError(t, err)
		got, err := json.Marshal(typed(all[0]))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got), given)
		spelled, err := json.Marshal(all)
		require.NoError(t, err)
		require.Equal(t, "["+given+"]", string(spelled))
		again, err := chat.ParseMessages(string(spelled), 9, nil)
		require.NoError(t, err)
		text, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(spelled), string(text))
	}
}

// TestTypedHolds: what is changed of a message that came stands where it stood, what is new behind it.
func TestTypedHolds(t *testing.T) {
	const given = `{"z":1,"content":null,"tool_calls":[{"function":{"arguments":"{}","name":"f","y":2},"x":3}],"role":"assistant"}`
	all, err := chat.ParseMessages("["+given+"]", 9, nil)
	require.NoError(t, err)
	requireMessages(t, given, all)
	m := &all[0]
	m.Role, m.Parts = "tool", []chat.Part{{Text: "a"}, {Kind: chat.Thought, Text: "b"}}
	m.Calls[0].ID, m.Calls[0].Name, m.Calls[0].Arguments = "1", "g", jsontext.Null{}
	m.Result = chat.Result{Call: "2", Name: "h"}
	requireMessages(t, `{"z":1,"content":"a","tool_calls":[{"function":{"arguments":null,"name":"g","y":2},"x":3,"id":"1"}],"role":"tool",`+
		`"reasoning_content":"b","tool_call_id":"2","name":"h"}`, all)
	require.Equal(t, "a", m.Text())

	all, err = chat.ParseMessages(`[{"content":[{"type":"text","text":"a"},{"type":"text","text":"b","z":1}],"role":"user"}]`, 9, nil)
	require.NoError(t, err)
	all[0].Parts = all[0].Parts[1:]
	requireMessages(t, `{"content":[{"type":"text","text":"b","z":1}],"role":"user"}`, all)
}

// TestReads: models read texts; what else there is, is refused by the name that the request has for it.
func TestReads(t *testing.T) {
	for _, kind := range []chat.PartKind{chat.Text, chat.Refusal, chat.Thought} {
		require.Nil(t, chat.Reads(chat.Part{Kind: kind}))
	}
	for _, c := range []struct {
		part        chat.Part
		place, text string
	}{
		{chat.Part{Kind: chat.Image, At: "images"}, "images", "images: this model reads text only, leave images out"},
		{chat.Part{Kind: chat.Image, At: "messages[2].images"}, "messages[2].images",
			"messages[2].images: this model reads text only, leave images out"},
		{chat.Part{Kind: chat.Image, Type: "image", At: "system[3]"}, "system",
			`system[3].type is "image": this model reads text only, leave other parts out`},
		{chat.Part{Kind: chat.File, Type: "document", At: "input[1].content[2]"}, "input[1].content",
			`input[1].content[2].type is "document": this model reads text only, leave other parts out`},
		{chat.Part{Kind: chat.Other, At: "input[1].content[2]"}, "input[1].content",
			`input[1].content[2].type is "empty": this model reads text only, leave other parts out`},
	} {
		require.Equal(t, &chat.Fault{Place: c.place, Text: c.text, Unsupported: true}, chat.Reads(c.part))
		m := chat.Say("user", "a")
		m.Parts = append(m.Parts, c.part)
		_, err := chat.Habits{}.Normalise([]chat.Message{m}, nil)
		require.EqualError(t, err, c.text)
	}
}

// TestText: what a message says is its texts, and a prompt that goes on with one ends with the last of them.
func TestText(t *testing.T) {
	template, err := chat.Compile(`{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}` +
		`{{ p.text }}{{ p.refusal }};{% endfor %}{% endif %} end{% endfor %}`)
	require.NoError(t, err)
	for given, want := range map[string][2]string{
		`{"role":"assistant","content":"a","reasoning_content":"b"}`:                                       {"a", "a"},
		`{"content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}]}`:                       {"a", "a"},
		`{"content":[{"type":"text","text":"a"},{"type":"image"}]}`:                                        {"a", "a"},
		`{"content":[{"type":"text","text":"a"},{"text":"b"}],"reasoning_content":"c","role":"assistant"}`: {"ab", "a;b"},
	} {
		all, err := chat.ParseMessages("["+given+"]", 9, nil)
		require.NoError(t, err)
		require.Equal(t, want[0], all[0].Text(), given)
		out, err := template.Render(chat.Input{Messages: all, ContinueFinalMessage: true})
		require.NoError(t, err)
		require.Equal(t, want[1], out, given)
	}
}
