package chat_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestHabits: how a template wants calls is what it writes them for, as JSON rather than as Python.
func TestHabits(t *testing.T) {
	const each = `{% for m in messages %}{% for c in m.tool_calls %}[`
	const end = `]{% endfor %}{% endfor %}`
	for source, want := range map[string]chat.Habits{
		each + `{{ c.function.arguments | tojson }}` + end:                                  {},
		each + `{{ c.function.arguments.qqkey }}` + end:                                     {},
		each + `{{ "json: " + c.function.arguments }}` + end:                                {Text: true},
		each + `{{ c.function.arguments }}` + end:                                           {Text: true},
		each + `{{ (c.function.arguments | tojson) if m.content is none else "" }}` + end:   {Bare: true},
		each + `{{ "json: " + c.function.arguments if m.content is none else "" }}` + end:   {Text: true, Bare: true},
		each + `{{ c.function.name }}` + end:                                                {},
		`{% for m in messages %}{{ m.content }}{% endfor %}`:                                {},
		`{% for m in messages %}{{ raise_exception("no tool_calls here") }}{% endfor %}`:    {},
		each + `{{ c.function.arguments if c.function.arguments is string else "" }}` + end: {Text: true},
	} {
		template, err := chat.Compile(source)
		require.NoError(t, err)
		h := template.Habits()
		require.Equal(t, []bool{want.Text, want.Bare}, []bool{h.Text, h.Bare}, source)
	}
	dir := filepath.Join(testref.Dir(t), "templates")
	all, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
	require.NoError(t, err)
	other := map[string]chat.Habits{}
	for _, path := range all {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		template, err := chat.Compile(string(source))
		require.NoError(t, err)
		if h := template.Habits(); h.Text || h.Bare {
			other[filepath.Base(path)] = chat.Habits{Text: h.Text, Bare: h.Bare}
		}
	}
	require.Equal(t, map[string]chat.Habits{
		"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja": {Text: true, Bare: true},
		"meetkai-functionary-medium-v3.2.jinja":          {Text: true},
	}, other)
}

// TestSpelledCalls: templates that know tools, but no calls, have them in the text as the model writes them.
func TestSpelledCalls(t *testing.T) {
	const messages = `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"So: ","tool_calls":[` +
		`{"function":{"name":"f","arguments":{"a":"é","b":true,"c":false,"d":null,"e":[1,{"k":"v"}]}}},{"function":{"name":"g",` +
		`"arguments":"{}"}}]},{"role":"assistant","content":"no","tool_calls":[{"function":{"name":"f","arguments":"{"}}]},` +
		`{"role":"assistant","content":"none","tool_calls":[]},{"role":"assistant","content":"anon","tool_calls":[{"function":` +
		`{"arguments":{}}}]}]}`
	const each = `{% for m in messages %}{{ m.content }}|{% endfor %}`
	for source, want := range map[string]string{
		`{# List of tools:  #}` + each: `x|So: <|tool_call_start|>[f(a="é", b=True, c=False, d=None, e=[1, {"k": "v"}]), g()]` +
			`<|tool_call_end|>|no|none|anon|`,
		`{# respond only with <|tool_call|> #}` + each: `x|So: <|tool_call|>[{"name": "f", "arguments": {"a": "é", "b": true, ` +
			`"c": false, "d": null, "e": [1, {"k": "v"}]}}, {"name": "g", "arguments": {}}]|no|none|anon|`,
		each: `x|So: |no|none|anon|`,
		`{# List of tools: #}{% for m in messages %}{{ m.tool_calls | tojson if m.tool_calls else m.content }}|{% endfor %}`: "x|",
	} {
		template, err := chat.Compile(source)
		require.NoError(t, err)
		got, err := template.RenderConversation(messages)
		require.NoError(t, err)
		if want == "x|" { // it writes calls itself
			require.NotContains(t, got, "tool_call_start")
			continue
		}
		require.Equal(t, want, got, source)
	}
}

// TestNormaliseToHabits: calls reach a template in its form, and what is no call as it came.
func TestNormaliseToHabits(t *testing.T) {
	const object = `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":[1,"é"]}}},{"x":1}]}`
	const text = `{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\": [1, \"é\"]}"}},{"x":1}]}`
	for _, given := range []string{object, text} {
		for want, h := range map[string]chat.Habits{object: {}, text: {Text: true, Bare: true}} {
			messages, err := chat.ParseMessages("["+given+"]", 9, nil)
			require.NoError(t, err)
			got, err := h.Normalise(messages, nil)
			require.NoError(t, err)
			requireMessages(t, want, got)
			requireMessages(t, given, messages)
		}
	}
	for _, said := range []string{
		`{"role":"assistant","content":"So","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":"","tool_calls":[]}`, `{"role":"assistant","content":""}`,
	} {
		messages, err := chat.ParseMessages("["+said+"]", 9, nil)
		require.NoError(t, err)
		got, err := chat.Habits{Text: true, Bare: true}.Normalise(messages, nil)
		require.NoError(t, err)
		requireMessages(t, said, got)
	}
}

// TestBareKeepsThoughts: a message of calls alone has its members where they stood; a budget pays for arguments.
func TestBareKeepsThoughts(t *testing.T) {
	m := chat.Message{Role: "assistant", Parts: []chat.Part{{Kind: chat.Thought, Text: "b"}}, Calls: []chat.Call{
		{ID: "1", Name: "f", Arguments: jsontext.String(`{"a":[1,2]}`)}}}
	bare := chat.Habits{Text: true, Bare: true}
	got, err := bare.Normalise([]chat.Message{m}, nil)
	require.NoError(t, err)
	requireMessages(t, `{"role":"assistant","content":null,"reasoning_content":"b","tool_calls":[{"id":"1","type":"function",`+
		`"function":{"name":"f","arguments":"{\"a\":[1,2]}"}}]}`, got)
	require.Equal(t, m.Parts, got[0].Parts)
	_, err = chat.Habits{}.Normalise([]chat.Message{m}, &jsontext.Budget{Values: 2})
	require.ErrorIs(t, err, jsontext.ErrTooMany)
}
