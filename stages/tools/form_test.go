package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
)

// formed are how some templates write a call of f with the argument a, and then one of g without.
var formed = map[string]string{
	"Qwen-Qwen3-0.6B.jinja": "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n" +
		"<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
	"Qwen3-Coder.jinja": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\n" +
		"<tool_call>\n<function=g>\n</function>\n</tool_call>",
	"GLM-4.6.jinja": "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>\n" +
		"<tool_call>g\n</tool_call>",
	"meta-llama-Llama-3.1-8B-Instruct.jinja": `{"name": "f", "parameters": {}}`,
	"Mistral-Small-3.2-24B-Instruct-2506.jinja": "[TOOL_CALLS]f[CALL_ID]LETTERS[ARGS]{}[TOOL_CALLS]g[CALL_ID]LETTERS" +
		"[ARGS]{}",
	"deepseek-ai-DeepSeek-V3.1.jinja": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>" +
		"<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	"openai-gpt-oss-120b.jinja":   "to=functions.f<|channel|>commentary json<|message|>{}",
	"google-gemma-4-31B-it.jinja": `<|tool_call>call:f{a:<|"|>1<|"|>}<tool_call|><|tool_call>call:g{}<tool_call|>`,
	"moonshotai-Kimi-K2.jinja":    "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:DIGIT<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_begin|>functions.g:DIGIT<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", //nolint:lll // a text
	"LFM2-8B-A1B.jinja":           `<|tool_call_start|>[f(a="1"), g()]<|tool_call_end|>`,
	"ibm-granite-granite-3.3-2B-Instruct.jinja": `<|tool_call|>[{"name": "f", "arguments": {}}, ` +
		`{"name": "g", "arguments": {}}]`,
	"LFM2.5-8B-A1B.jinja":    `<|tool_call_start|>[f(a="1"), g()]<|tool_call_end|>`,
	"Kimi-K2-Thinking.jinja": "",
	"Cohere2MoE.jinja":       "<|START_ACTION|>[\n    {\"tool_call_id\": \"DIGIT\", \"tool_name\": \"f\", \"parameters\": {}},\n    {\"tool_call_id\": \"DIGIT\", \"tool_name\": \"g\", \"parameters\": {}}\n]<|END_ACTION|>", //nolint:lll // a text
	"mistralai-Mistral-Nemo-Instruct-2407.jinja": `[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "LETTERS"}, ` +
		`{"name": "g", "arguments": {}, "id": "LETTERS"}]`,
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n" +
		"```json\n{}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜>",
	"google-gemma-2-2b-it.jinja":     "",
	"MiniMax-M3.jinja":               "", // its marks have the keys in them
	"HuggingFaceTB-SmolLM3-3B.jinja": "",
}

// written is a call in a form, and another where there may be two.
func (f *Form) written() string {
	text := f.Open + "f"
	again := f.Next != ""
	if e := f.Elements; e != nil {
		value := e.Quote + "1" + e.End
		if e.JSON {
			value = `"1"`
		}
		if text += e.First + "a" + e.Set + value; again {
			return text + f.Next + "g" + e.NoneClose
		}
		return text + f.Close
	}
	if text += f.Mid + "{}"; again {
		text += f.Next + "g" + f.Mid + "{}"
	}
	return text + f.Close
}

// TestForms: how templates write calls is found out by examples.
func TestForms(t *testing.T) {
	dir := filepath.Join(testref.Dir(t), "templates")
	all, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
	require.NoError(t, err)
	ends := []string{"<|call|>", "<|calls|>", "<|tool_response>", "<|eom_id|>", "<SPECIAL_12>", "<｜end▁of▁sentence｜>"}
	found := 0
	for _, path := range all {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		compiled, err := chat.Compile(string(text))
		require.NoError(t, err)
		f := Shown(string(text), compiled.RenderConversation).Form(string(text), compiled.RenderConversation, ends)
		want, known := formed[filepath.Base(path)]
		if f == nil {
			require.Empty(t, want, path)
			continue
		}
		found++
		if e := f.Elements; e != nil {
			require.Equal(t, f.Next != "", e.NoneNext != "", "%s: what follows a call without arguments", path)
		}
		if got := strings.NewReplacer(Digit, "DIGIT", Letters, "LETTERS").Replace(f.written()); known {
			require.Equal(t, want, got, path)
		}
	}
	require.Equal(t, 55, found)
}

// TestThoughtsOfForms: a thought may come before forced calls where the template has marks for it.
func TestThoughtsOfForms(t *testing.T) {
	for template, want := range map[string]string{
		"Qwen-Qwen2.5-7B-Instruct.jinja": "", "Qwen-Qwen3-0.6B.jinja": "<think>",
		"openai-gpt-oss-120b.jinja": "<|channel|>analysis<|message|>",
	} {
		text, err := os.ReadFile(filepath.Join(testref.Dir(t), "templates", template))
		require.NoError(t, err)
		require.Equal(t, want, For(string(text)).thoughtIn(string(text))[0], template)
	}
}
