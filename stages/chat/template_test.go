package chat_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
)

func compile(t testing.TB, source string) *chat.Template {
	t.Helper()
	tmpl, err := chat.Compile(source)
	require.NoError(t, err)
	return tmpl
}

// TestConversationKeepsOrder: objects print as they came, numbers as they were written.
func TestConversationKeepsOrder(t *testing.T) {
	source := `{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, ` +
		`{"type": "text", "text": "b"}], "z": 1, "a": 1.0, "n": 123456789012345678901234567890}], "tools": [{"b": 1, "a": 2}]}`
	c, err := chat.ParseConversation(source)
	require.NoError(t, err)
	require.Equal(t, "user", c.Messages[0].Role)
	require.Equal(t, "ab", c.Messages[0].Text())
	require.Nil(t, c.Documents)

	tmpl := compile(t, "{{ messages | tojson }}|{{ tools | tojson }}|{{ documents is none }}")
	out, err := tmpl.Render(chat.Input{Messages: c.Messages, Tools: c.Tools})
	require.NoError(t, err)
	require.Equal(t, `[{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, `+
		`{"type": "text", "text": "b"}], "z": 1, "a": 1.0, "n": 123456789012345678901234567890}]|[{"b": 1, "a": 2}]|True`, out)

	saved, err := json.Marshal(c.Messages)
	require.NoError(t, err)
	again, err := chat.ParseMessages(string(saved), 9, nil)
	require.NoError(t, err)
	require.Equal(t, c.Messages, again)
}

func TestBadConversations(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`{`, "conversation: JSON: byte 1: want a key"},
		{`[] []`, "conversation: JSON: byte 3: want the end: more follows the value"},
		{`{}`, `conversation: there is no "messages": want {"messages": [{"role": …, "content": …}]}`},
		{`{"messages": 5}`, `messages: want a list: [{"role": "user", "content": "…"}]`},
		{`[{}, "hi"]`, `messages[1]: want an object: {"role": "user", "content": "…"}`},
		{strings.Repeat("[", 2000), "conversation: JSON: byte 1000: nested deeper than 1000 levels"},
		{strings.Repeat("9", 9999), "conversation: JSON: byte 9999: an integer that is too long: 9999 digits, at most 4300 are accepted"},
	} {
		_, err := chat.ParseConversation(c.source)
		require.EqualError(t, err, c.want)
	}
	_, err := chat.ParseVariables(`[1]`, nil)
	require.EqualError(t, err, `template variables: want an object such as {"enable_thinking": false}`)
}

func TestRenderRefuses(t *testing.T) {
	tmpl := compile(t, "{{ messages[0].content }}")
	extra := &jsontext.Object{}
	extra.Set("messages", jsontext.String("x"))
	hi := []chat.Message{chat.Say("user", "hi")}
	for _, c := range []struct {
		in   chat.Input
		want string
	}{
		{chat.Input{Messages: hi, AddGenerationPrompt: true, ContinueFinalMessage: true},
			"a prompt either asks for a new message or goes on with the last one, not both"},
		{chat.Input{Messages: hi, Extra: extra},
			`template variable "messages" is set from the conversation: leave it out of the others`},
		{chat.Input{Messages: append(hi, chat.Say("", "lost")), ContinueFinalMessage: true},
			"the final message does not appear in the chat after applying the template: it cannot be continued"},
		{chat.Input{}, "chat template line 1: UndefinedError: list object has no element 0"},
	} {
		_, err := tmpl.Render(c.in)
		require.EqualError(t, err, c.want)
	}
	_, err := compile(t, "").Render(chat.Input{ContinueFinalMessage: true})
	require.EqualError(t, err, "there is no last message to continue")
}

// TestConcurrent: one template serves all requests at once, even one that takes its input apart.
func TestConcurrent(t *testing.T) {
	tmpl := compile(t, "{% set m = messages.pop() %}{{ m.content }}{{ messages | length }}{{ tools.pop() }}{{ extra.pop() }}")
	extra := &jsontext.Object{}
	extra.Set("extra", jsontext.List{jsontext.Number("3")})
	in := chat.Input{
		Messages: []chat.Message{chat.Say("user", "a"), chat.Say("user", "b")},
		Tools:    jsontext.List{jsontext.Number("1"), jsontext.Number("2")}, Extra: extra,
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				out, err := tmpl.Render(in)
				assert.NoError(t, err)
				assert.Equal(t, "b123", out)
			}
		})
	}
	wg.Wait()
}

// BenchmarkRender renders ten messages with tools through the template of Qwen3.
func BenchmarkRender(b *testing.B) {
	source, err := os.ReadFile(filepath.Join(testref.Dir(b), "templates", "Qwen-Qwen3-0.6B.jinja"))
	require.NoError(b, err)
	tmpl := compile(b, string(source))
	in := chat.Input{AddGenerationPrompt: true}
	for i := range 10 {
		in.Messages = append(in.Messages, chat.Say([]string{"user", "assistant"}[i%2], strings.Repeat("some words of a message ", 20)))
	}
	tools, err := jsontext.Parse(`[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]`, nil)
	require.NoError(b, err)
	in.Tools = tools
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(in); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRoles: messages may have the usual roles, and those that the template itself compares roles with.
func TestRoles(t *testing.T) {
	usual := []string{"system", "developer", "user", "assistant", "tool"}
	for source, want := range map[string][]string{
		"": {},
		`{% for m in messages %}{% if m.role == "ipython" or "model" != m["role"] %}{% endif %}{% endfor %}`: {"ipython", "model"},
		`{% set role = 1 %}{{ "a" if role in ["user", ("b", 1)] else "c" if x == "d" }}`:                     {"b"},
	} {
		template, err := chat.Compile(source)
		require.NoError(t, err)
		require.Equal(t, append(usual[:5:5], want...), template.Habits().Roles, source)
	}
	messages := []chat.Message{chat.Say("user", "Hi"), chat.Say("root", "Hi")}
	_, err := chat.Habits{Roles: usual}.Normalise(messages, nil)
	require.EqualError(t, err, `messages[1].role is "root": want one of system, developer, user, assistant, tool`)
	_, err = chat.Habits{}.Normalise(messages, nil)
	require.NoError(t, err)
}
