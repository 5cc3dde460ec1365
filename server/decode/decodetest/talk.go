package decodetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// Talk is a conversation that ends with a question, or with results of tools.
type Talk struct {
	Messages []chat.Message
	Tools    []Tool
}

// Tool declares a tool. No field is empty.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// every is a template that prints everything that templates can read of a message.
const every = `{% for m in messages %}[{{ m.role }}|{{ m.content }}|{{ m.reasoning_content }}|{% for c in m.tool_calls %}{{ c.id }} ` +
	`{{ c.type }} {{ c.function.name }}({{ c.function.arguments | tojson }}){% endfor %}|{{ m.tool_call_id }}|{{ m.name }}]
{% endfor %}{{ tools | tojson }}{{ add_generation_prompt }}`

// Same checks that a dialect's request for a conversation renders to the same prompt as the conversation, by templates
// of ours and of real models. Templates that contain own, the name of a field that the dialect sets itself, are left
// out.
func Same(t *testing.T, own string, ask func(talk Talk, h chat.Habits) (*chat.Input, *wire.Fault)) {
	sources := []string{every, strings.ReplaceAll(every, " | tojson }})", " }})")}
	for _, path := range names(t) {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		if own == "" || !strings.Contains(string(source), own) {
			sources = append(sources, string(source))
		}
	}
	templates := make([]*chat.Template, len(sources))
	for i, source := range sources {
		var err error
		templates[i], err = chat.Compile(source)
		require.NoError(t, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		talk := draw(t)
		template := templates[rapid.IntRange(0, len(templates)-1).Draw(t, "template")]
		got, fault := ask(talk, template.Habits())
		require.Nil(t, fault)
		messages, err := template.Habits().Normalise(talk.Messages, nil)
		require.NoError(t, err)
		want := chat.Input{Messages: messages, Tools: declared(talk.Tools), Extra: got.Extra, AddGenerationPrompt: true}
		text, refusal := template.Render(want)
		prompt, err := template.Render(*got)
		require.Equal(t, refusal, err)
		require.Equal(t, text, prompt)
	})
}

func names(t *testing.T) []string {
	all, err := filepath.Glob(filepath.Join(testref.Dir(t), "templates", "*.jinja"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func declared(tools []Tool) jsontext.Value {
	var list jsontext.List
	for _, tool := range tools {
		text := fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":%s}}`, tool.Name,
			tool.Description, tool.Parameters)
		v, err := jsontext.Parse(text, nil)
		if err != nil {
			panic(err)
		}
		list = append(list, v)
	}
	if list == nil {
		return nil
	}
	return list
}

func draw(t *rapid.T) (talk Talk) {
	if rapid.Bool().Draw(t, "tools") {
		talk.Tools = []Tool{{"f", "Does it.", json.RawMessage(`{"type":"object","properties":{"z":{"type":"number"},` +
			`"a":{"type":"string"}}}`)}, {"g", "Does more.", json.RawMessage(`{"type":"object","properties":{}}`)}}
	}
	say := func(m chat.Message) { talk.Messages = append(talk.Messages, m) }
	if rapid.Bool().Draw(t, "system") {
		say(chat.Say("system", "Be brief."))
	}
	rounds, calls := rapid.IntRange(1, 3).Draw(t, "rounds"), 0
	for round := range rounds {
		say(chat.Message{Role: "user", Parts: texts(t, 1)})
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			m := chat.Message{Role: "assistant", Parts: append(thoughts(t), texts(t, 0)...), Calls: drawCalls(t, &calls)}
			say(m)
			for _, c := range m.Calls {
				say(chat.Message{Role: "tool", Parts: texts(t, 1), Result: chat.Result{Call: c.ID, Name: c.Name}})
			}
		}
		if round < rounds-1 {
			say(chat.Message{Role: "assistant", Parts: append(thoughts(t), texts(t, 1)...)})
		}
	}
	return talk
}

func texts(t *rapid.T, least int) (parts []chat.Part) {
	for range rapid.IntRange(least, 3).Draw(t, "texts") {
		parts = append(parts, chat.Part{Text: rapid.SampledFrom([]string{"2+2?", "é\n", " ", "", "{{ x }}", `"\`}).Draw(t, "text")})
	}
	return parts
}

func thoughts(t *rapid.T) (parts []chat.Part) {
	for range rapid.IntRange(0, 2).Draw(t, "thoughts") {
		parts = append(parts, chat.Part{Kind: chat.Thought, Text: rapid.SampledFrom([]string{"Hm", " So.\n"}).Draw(t, "thought")})
	}
	return parts
}

func drawCalls(t *rapid.T, made *int) (calls []chat.Call) {
	for range rapid.IntRange(1, 2).Draw(t, "calls") {
		*made++
		arguments, err := jsontext.Parse(rapid.SampledFrom([]string{`{}`, `{"z":1.50,"a":"é"}`, `{"a":null,"b":[true,{"c":1}]}`}).
			Draw(t, "arguments"), nil)
		if err != nil {
			panic(err)
		}
		calls = append(calls, chat.Call{ID: fmt.Sprintf("aaaaaaa%02d", *made), Arguments: arguments,
			Name: rapid.SampledFrom([]string{"f", "g"}).Draw(t, "name")})
	}
	return calls
}
