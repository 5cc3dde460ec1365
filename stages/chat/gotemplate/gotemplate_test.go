package gotemplate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/gotemplate"
)

// render renders a conversation by a template of Ollama's.
func render(t *testing.T, source, conversation string, generate bool) string {
	t.Helper()
	text, err := gotemplate.Jinja(source)
	require.NoError(t, err, source)
	compiled, err := chat.Compile(text)
	require.NoError(t, err, text)
	c, err := chat.ParseConversation(conversation)
	require.NoError(t, err)
	out, err := compiled.Render(chat.Input{Messages: c.Messages, Tools: c.Tools, AddGenerationPrompt: generate,
		Now: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err, text)
	return out
}

const (
	chatML = "{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}{{ if .Prompt }}<|im_start|>user\n" +
		"{{ .Prompt }}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ .Response }}<|im_end|>\n"
	withMessages = `{{- if or .System .Tools }}<sys>
{{- if .System }}
{{ .System }}
{{- end }}
{{- range .Tools }}
{{ . }}
{{- end }}</sys>
{{- end }}
{{- range $i, $_ := .Messages }}
{{- $last := eq (len (slice $.Messages $i)) 1 }}
{{- if eq .Role "user" }}<u>{{ .Content }}</u>
{{- else if eq .Role "assistant" }}<a>
{{- if .ToolCalls }}{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "parameters": {{ json .Function.Arguments }}}{{ end }}
{{- else }}{{ .Content }}
{{- end }}{{ if not $last }}</a>{{ end }}
{{- else if eq .Role "tool" }}<t>{{ .Content }}</t>
{{- end }}
{{- if and $last (ne .Role "assistant") }}<a>{{ end }}
{{- end }}`
)

// The expected texts are those that Ollama's own rules give: the system messages are one, and the last turn ends where
// the answer begins.
func TestJinja(t *testing.T) {
	const two = `[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`
	for _, c := range []struct {
		name, source, conversation, want string
		generate                         bool
	}{
		{"a turn", chatML, `[{"role":"user","content":"Hi"}]`, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", true},
		{"turns", chatML, two, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n" +
			"<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n", true},
		{"an answer", chatML, `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`,
			"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n", false},
		{"an answer that may be empty", "[INST] {{ .Prompt }} [/INST]{{ if .Response }} {{ .Response }}</s>{{ end }}", two,
			"[INST] a [/INST] b</s>[INST] c [/INST] ", true},
		{"messages", withMessages, two, "<sys>\nS</sys><u>a</u><a>b</a><u>c</u><a>", true},
		{"calls", withMessages, `{"messages":[{"role":"user","content":"w"},{"role":"assistant","content":"","tool_calls":[{"type":"function",` +
			`"function":{"name":"f","arguments":{"x":1,"y":["é"]}}}]},{"role":"tool","content":"21"}],"tools":[{"type":"function",` +
			`"function":{"name":"f","parameters":{}}}]}`, "<sys>\n" + `{"type":"function","function":{"name":"f","parameters":{}}}` +
			"</sys><u>w</u>" + `<a>{"name": "f", "parameters": {"x":1,"y":["é"]}}</a><t>21</t><a>`, true},
		{"variables", `{{ $n := "none" }}{{ range .Messages }}{{ if eq .Role "user" "tool" }}{{ $n = .Content }}{{ continue }}{{ end }}-{{ end }}{{ $n }}`,
			two, "--c", true},
		{"keys", `{{ range .Tools }}{{ range $k, $v := .Function.Parameters.Properties }}{{ $k }}={{ $v.Type }};{{ end }}{{ else }}none{{ end }}{{ range .Messages }}{{ end }}`,
			`{"messages":[],"tools":[{"function":{"parameters":{"properties":{"b":{"type":"integer"},"a":{"type":"string"}}}}}]}`,
			"a=string;b=integer;", true},
		{"pipes", "{{ with .Messages }}{{ len . }}{{ end }}{{ (index .Messages 0).Content | json }}{{ currentDate }}\\'{{/* no */}}\n", two,
			`4"S"2026-11-23\'` + "\n", true},
	} {
		require.Equal(t, c.want, render(t, c.source, c.conversation, c.generate), c.name)
	}
}

func TestJinjaRefuses(t *testing.T) {
	for source, want := range map[string]string{
		"{{ .Prompt": "unclosed action",
		`{{ define "a" }}x{{ end }}{{ .Prompt }}`: `defines the template "a"`,
		`{{ template "a" }}`:                      "has no counterpart in Jinja",
		"{{ .Secret }}":                           ".Secret is not known",
		`{{ printf "%d" 5 }}`:                     "the function printf with 2 arguments has no counterpart in Jinja",
		"{{ . }}":                                 "the dot at the top",
		"{{ $x }}":                                "undefined variable",
		"{{ range .Messages }}{{ .Other }}{{ end }}": ".Other is not known",
		"": "is empty",
	} {
		_, err := gotemplate.Jinja(source)
		require.ErrorContains(t, err, want, source)
	}
}

// FuzzJinja: whatever a template is, it is an error, or a template of Jinja that compiles.
func FuzzJinja(f *testing.F) {
	f.Add(chatML)
	f.Add(withMessages)
	f.Add(`{{ $n := 1 }}{{ range $i, $m := .Messages }}{{ with $m.ToolCalls }}{{ index . 0 }}{{ else }}{{ break }}{{ end }}{{ end }}`)
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 10_000 {
			return
		}
		text, err := gotemplate.Jinja(source)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		if _, err := chat.Compile(text); err != nil {
			require.Contains(t, strings.ToLower(err.Error()), "nest", text)
		}
	})
}
