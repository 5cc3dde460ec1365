package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
)

// telling are templates whose calls can be read from what they write, without their family.
var telling = map[string]bool{
	"Apertus-8B-Instruct.jinja": true, "Bielik-11B-v3.0-Instruct.jinja": true, "Cohere2MoE.jinja": true,
	"CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja": true, "GigaChat3-10B-A1.8B.jinja": true,
	"GigaChat3.1-10B-A1.8B.jinja": true, "MiMo-VL.jinja": true, "MiniMax-M1.jinja": true,
	"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja": true,
	"NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja":   true,
	"Qwen-Qwen2.5-7B-Instruct.jinja":                      true, "Qwen-Qwen3-0.6B.jinja": true, "Reka-Edge.jinja": true,
	"deepseek-ai-DeepSeek-V3.1.jinja": true, "ibm-granite-granite-4.0.jinja": true, "ibm-granite-granite-4.1.jinja": true,
	"meetkai-functionary-medium-v3.1.jinja": true, "meta-llama-Llama-3.1-8B-Instruct.jinja": true,
	"meta-llama-Llama-3.2-3B-Instruct.jinja": true, "meta-llama-Llama-3.3-70B-Instruct.jinja": true,
	"mistralai-Ministral-3-14B-Reasoning-2512.jinja": true, "moonshotai-Kimi-K2.jinja": true,
	"unsloth-Apriel-1.5.jinja": true, "unsloth-mistral-Devstral-Small-2507.jinja": true,
}

// TestDerivedReference: the cases of these templates hold with no family but what the template itself writes.
func TestDerivedReference(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testref.Dir(t), "refdata", "tools", "tools.json"))
	require.NoError(t, err)
	set, err := ParseSet(data)
	require.NoError(t, err)
	syntaxes := map[string]*Syntax{}
	for template := range telling {
		text, err := os.ReadFile(filepath.Join(testref.Dir(t), "templates", template))
		require.NoError(t, err)
		compiled, err := chat.Compile(string(text))
		require.NoError(t, err)
		s, ok := derive(compiled.RenderConversation)
		require.True(t, ok, template)
		s.thinks = append(s.thinks, usualThinks[:]...)
		syntaxes[template] = s.index()
	}
	n := 0
	for c := range testref.Cases[roundtrip](t, "refdata", "tools", "roundtrip.jsonl") {
		s := syntaxes[c.Template]
		if s == nil {
			continue
		}
		n++
		assert.Empty(t, parse(t, s, c.Tail, set, c.Output).wrong(c.Expect), c.ID)
		single := parse(t, s, c.Tail, set, strings.Split(c.Output, "")...)
		assert.Empty(t, single.wrong(c.Expect), "%s in single characters", c.ID)
	}
	require.Greater(t, n, 350)
}

// TestShown: templates of nobody, and what their models write.
func TestShown(t *testing.T) {
	const talk = `{% for m in messages %}<{{ m.role }}>{{ m.content }}`
	for _, c := range []struct{ name, template, answer, want string }{
		{"an object in marks", talk + `{% for c in m.tool_calls %}<<DO>> {"fn": "{{ c.function.name }}", ` +
			`"with": {{ c.function.arguments | tojson }}} <<DONE>>{% endfor %}</s>{% endfor %}`,
			`So: <<DO>> {"fn": "f", "with": {"a": 1}} <<DONE>><<DO>> {"fn": "g", "with": {}}`, `f{"a": 1} g{}`},
		{"a list in marks", talk + `{% if m.tool_calls %}(:{% for c in m.tool_calls %}{{ [c.function] | tojson }}` +
			`{% endfor %}:){% endif %}</s>{% endfor %}`,
			`So: (:[{"name": "f", "arguments": {"a": 1}}]:)`, `f{"a": 1}`},
		{"a name and an object", talk + `{% if m.tool_calls %}<all>{% for c in m.tool_calls %}<do>` +
			`{{ c.function.name }}<with>{{ c.function.arguments | tojson }}</do>{% endfor %}</all>{% endif %}</s>{% endfor %}`,
			`So: <all><do>f<with>{"a": 1}</do><do>g<with>{"b": {}}</do></all>`, `f{"a": 1} g{"b": {}}`},
		{"no calls", talk + `</s>{% endfor %}`, `So: <do>f</do>`, ``},
		{"one call at most", talk + `{% if m.tool_calls | length > 1 %}{{ raise_exception("one") }}{% endif %}` +
			`{% for c in m.tool_calls %}!do {{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}</s>{% endfor %}`,
			`So: !do f {"a": 1}`, `f{"a": 1}`},
	} {
		compiled, err := chat.Compile(c.template)
		require.NoError(t, err)
		s := Shown(c.template, compiled.RenderConversation)
		a := parse(t, s, "", nil, c.answer)
		var got []string
		for i, name := range a.names {
			got = append(got, name+a.arguments[i])
		}
		assert.Equal(t, c.want, strings.Join(got, " "), c.name)
		if c.want != "" {
			assert.Equal(t, "So:", strings.TrimSpace(a.content), c.name)
		} else {
			assert.Equal(t, c.answer, a.content, c.name)
		}
		assert.Equal(t, a, parse(t, s, "", nil, strings.Split(c.answer, "")...), c.name)
	}
}
