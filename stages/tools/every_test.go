package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
)

// uncalled are templates that write no calls, and why; "" where they just do not know them.
var uncalled = map[string]string{
	"HuggingFaceTB-SmolLM3-3B.jinja": "", "google-gemma-2-2b-it.jinja": "", "llama-cpp-rwkv-world.jinja": "", "llama3-original.jinja": "",
	"microsoft-Phi-3.5-mini-instruct.jinja": "", "microsoft-phi-3-vocab.jinja": "",
	"Kimi-K2-Instruct.jinja": "is unsafe", "Kimi-K2-Thinking.jinja": "is unsafe", // as Jinja2's sandbox has it
	"MiroThinker.jinja": "'tool' is undefined", "fireworks-ai-llama-3-firefunction-v2.jinja": "'functions' is undefined",
	"llama-cpp-deepseek-r1.jinja": "Object of type generator is not JSON serializable",
}

const everyTools = `[{"type":"function","function":{"name":"get_weather","description":"Tells it.","parameters":{"type":"object",
	"properties":{"city":{"type":"string","description":"a"},"days":{"type":"integer","description":"b"},
	"now":{"type":"boolean","description":"c"}},"required":["city"]}}},{"type":"function","function":{"name":"add","description":"Adds.",
	"parameters":{"type":"object","properties":{"list":{"type":"array","description":"d","items":{"type":"number"}},
	"text":{"type":"string","description":"e"}},"required":["list"]}}}]`

// everyCalls are calls of these tools, for an assistant's message.
var everyCalls = []string{
	`{"id":"aaaaaaaa1","type":"function","function":{"name":"get_weather","arguments":{"city":"Zürich \"am See\"","days":3,"now":true}}}`,
	`{"id":"aaaaaaaa2","type":"function","function":{"name":"add","arguments":{"list":[1.5,2],"text":"two\nlines </x> {["}}}`,
}

// TestEveryTemplate: calls that a template writes, as the server has it write them, are read as these calls.
func TestEveryTemplate(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(testref.Dir(t), "templates", "*.jinja"))
	require.NoError(t, err)
	set, err := ParseSet([]byte(everyTools))
	require.NoError(t, err)
	read := 0
	for _, path := range all {
		name := filepath.Base(path)
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		compiled, err := chat.Compile(string(source))
		require.NoError(t, err)
		syntax := Shown(string(source), compiled.RenderConversation)
		for _, calls := range [][]string{everyCalls[:1], everyCalls[1:], everyCalls} {
			output, tail, err := written(t, compiled, calls)
			if why, ok := uncalled[name]; ok {
				if err != nil {
					require.ErrorContains(t, err, why, name)
				} else {
					require.NotContains(t, output, "aaaaaaaa", name)
					require.NotContains(t, output, "get_weather", name)
				}
				continue
			}
			if len(calls) > 1 && regexp.MustCompile("^(meta-llama|GigaChat|openai)").MatchString(name) {
				continue // it writes one
			}
			require.NoError(t, err, name)
			var want expect
			require.NoError(t, json.Unmarshal([]byte(`{"tool_calls":[`+strings.Join(calls, ",")+`]}`), &want))
			for i, call := range calls {
				var c struct{ Function json.RawMessage }
				require.NoError(t, json.Unmarshal([]byte(call), &c))
				require.NoError(t, json.Unmarshal(c.Function, &want.ToolCalls[i]))
			}
			require.Empty(t, parse(t, syntax, tail, set, output).wrong(want), "%s: %q after %q", name, output, tail)
			single := parse(t, syntax, tail, set, strings.Split(output, "")...)
			require.Empty(t, single.wrong(want), "%s in single characters: %q", name, output)
			read++
		}
	}
	require.Equal(t, 3*(len(all)-len(uncalled))-6, read)
}

// written is what a template writes for an assistant's calls: behind the prompt, before the end of its turn.
func written(t *testing.T, template *chat.Template, calls []string) (output, tail string, err error) {
	render := func(messages string, prompt bool) (string, error) {
		c, err := chat.ParseConversation(`{"messages":[{"role":"user","content":"Hello."}` + messages + `],"tools":` + everyTools + `}`)
		require.NoError(t, err)
		c.Messages, err = template.Habits().Normalise(c.Messages, nil)
		require.NoError(t, err)
		return template.Render(chat.Input{Messages: c.Messages, Tools: c.Tools, AddGenerationPrompt: prompt})
	}
	const words = "⁂words⁂"
	plain, err := render(`,{"role":"assistant","content":"`+words+`"}`, false)
	if err != nil {
		return "", "", err
	}
	_, end, _ := strings.Cut(plain, words)
	full, err := render(`,{"role":"assistant","content":"","tool_calls":[`+strings.Join(calls, ",")+`]}`, false)
	if err != nil {
		return "", "", err
	}
	tail, err = render("", true)
	require.NoError(t, err)
	output, ok := strings.CutPrefix(full, tail)
	if !ok { // the history is written in another way than what models continue
		output, tail = between(full, plain), ""
	}
	own := strings.TrimPrefix(common(output, end, true), "<|sep|>") // which ends each of Kimi K3's marks
	if strings.HasPrefix(own, "<") || strings.HasPrefix(own, "[") {
		output = strings.TrimSuffix(output, own)
	}
	for _, end := range [...]string{"<｜end▁of▁sentence｜>", "<|eom_id|>", "<｜hy_eos:opensource｜>", "<|calls|>"} { // others than behind a text
		output, _, _ = strings.Cut(output, end)
	}
	return output, tail, nil
}
