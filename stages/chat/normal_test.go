package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/chat"
)

// TestNormalise: messages reach templates in the form that these know; what they need not know stays where it was.
func TestNormalise(t *testing.T) {
	for _, c := range []struct{ name, given, want string }{
		{"text", `{"role":"user","content":"Hi","name":"Ann","z":1.0,"a":null}`, ""},
		{"developer", `{"name":"x","role":"developer","content":"Be brief."}`, `{"name":"x","role":"system","content":"Be brief."}`},
		{"parts", `{"content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"},{"type":"text","text":""}],"role":"user"}`,
			`{"content":"a\nb\n","role":"user"}`},
		{"one part", `{"role":"user","content":[{"type":"text","text":"a"}]}`, `{"role":"user","content":"a"}`},
		{"no parts", `{"role":"user","content":[]}`, `{"role":"user","content":""}`},
		{"calls", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",` +
			`"function":{"name":"f","arguments":"{\"z\": 1, \"a\": [2]}"}}]}`,
			`{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function",` +
				`"function":{"name":"f","arguments":{"z":1,"a":[2]}}}]}`},
		{"a refusal", `{"role":"assistant","content":null,"refusal":"No."}`, `{"role":"assistant","content":"No.","refusal":"No."}`},
		{"a thought", `{"role":"assistant","content":null,"reasoning_content":"Hm"}`,
			`{"role":"assistant","content":"","reasoning_content":"Hm"}`},
		{"calls alone", `{"role":"assistant","tool_calls":[]}`, `{"role":"assistant","tool_calls":[],"content":""}`},
		{"open arguments", `{"role":"assistant","content":"","tool_calls":[{"function":{"arguments":{"a":1}}}]}`, ""},
		{"arguments that are no object",
			`{"role":"assistant","content":"","tool_calls":[{"function":{"arguments":"[1"}},{"function":{"arguments":"[1]"}}]}`, ""},
		{"calls of another shape", `{"role":"assistant","content":"","tool_calls":[1,{"function":2},{},{"function":{}}]}`, ""},
		{"calls that are none", `{"role":"assistant","content":"","tool_calls":"f()"}`, ""},
		{"a tool's answer", `{"role":"tool","content":"3","tool_call_id":"1"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			given, err := chat.ParseMessages("["+c.given+"]", 9, nil)
			require.NoError(t, err)
			got, err := chat.Habits{}.Normalise(given, nil)
			require.NoError(t, err)
			if c.want == "" {
				c.want = c.given
			}
			requireMessages(t, c.want, got)
			requireMessages(t, c.given, given) // they are the caller's
			again, err := chat.Habits{}.Normalise(got, nil)
			require.NoError(t, err)
			requireMessages(t, c.want, again)
			want, err := chat.ParseMessages("["+c.want+"]", 9, nil)
			require.NoError(t, err)
			require.Equal(t, want[0].Role, got[0].Role)
			require.Equal(t, want[0].Text(), got[0].Text())
		})
	}
	plain := []chat.Message{chat.Say("developer", "a"), chat.Say("user", "b")}
	got, err := chat.Habits{}.Normalise(plain, nil)
	require.NoError(t, err)
	require.Equal(t, "system", got[0].Role)
	requireMessages(t, `{"role":"system","content":"a"},{"role":"user","content":"b"}`, got)
}

func requireMessages(t *testing.T, want string, got []chat.Message) {
	t.Helper()
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, "["+want+"]", string(text))
}

func TestNormaliseRefuses(t *testing.T) {
	long := strings.Repeat("x", 39) + "éé"
	for _, c := range []struct {
		given, place, text string
		unsupported        bool
	}{
		{`{"content":"Hi"}`, "role", `messages[1].role is missing: want "system", "user", "assistant" or "tool"`, false},
		{`{"role":"user"}`, "content", `messages[1].content is missing: want a string or a list of text parts`, false},
		{`{"role":"user","refusal":"no"}`, "content", `messages[1].content is missing: want a string or a list of text parts`, false},
		{`{"role":"user","content":null}`, "content", `messages[1].content is missing: want a string or a list of text parts`, false},
		{`{"role":"user","content":5}`, "content", `messages[1].content: want a string or a list of text parts`, false},
		{`{"role":"user","content":[5]}`, "content", `messages[1].content[0]: want {"type": "text", "text": "..."}`, false},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text"}]}`, "content",
			`messages[1].content[1].text: want a string`, false},
		{`{"role":"user","content":[{"type":"` + long + `"}]}`, "content",
			`messages[1].content[0].type is "` + long[:39] + `...": this model reads text only, leave other parts out`, true},
		{`{"role":"user","content":[{}]}`, "content",
			`messages[1].content[0].type is "empty": this model reads text only, leave other parts out`, true},
	} {
		messages, err := chat.ParseMessages(`[{"role":"user","content":""},`+c.given+"]", 9, nil)
		require.NoError(t, err)
		_, err = chat.Habits{}.Normalise(messages, nil)
		require.Equal(t, &chat.Fault{Place: "messages[1]." + c.place, Text: c.text, Unsupported: c.unsupported}, err, c.given)
	}
}

func TestParseTools(t *testing.T) {
	tools, err := chat.ParseTools(`[{"z":1,"a":2}]`, nil)
	require.NoError(t, err)
	require.Len(t, tools, 1)
	const want = `: want a list such as [{"type": "function", "function": {"name": ...}}]`
	for given, text := range map[string]string{
		`{}`: "tools is {}" + want, `[`: "tools is [" + want, `[{},1]`: "tools[1] is no object" + want,
	} {
		_, err := chat.ParseTools(given, nil)
		require.Equal(t, &chat.Fault{Place: "tools", Text: text}, err, given)
	}
}
