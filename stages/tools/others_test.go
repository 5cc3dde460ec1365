package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// aside are cases that want something else than we do.
var aside = map[string]string{
	"vllm/deepseek_v32/1": "a parameter that is called arguments is one",
	"llamacpp/mistralai-Ministral-3-14B-Reasoning-2512/7": "a schema's answer has no fence with us",
	"llamacpp/Apriel-1.6-15b-Thinker-fixed/1":             "the first words of the thought are the prompt's",
	"llamacpp/Apriel-1.6-15b-Thinker-fixed/2":             "the first words of the thought are the prompt's",
	"llamacpp/Apriel-1.6-15b-Thinker-fixed/4":             "nothing in the prompt's tail says that it ends in a thought",
	"vllm/glm45/10":                  "text behind calls is text",
	"vllm/mimo/18":                   "text behind calls is text",
	"ollama/DeepSeek3Parser/46":      "text behind calls is text",
	"vllm/deepseek_v31/2":            "text behind calls is text",
	"vllm/granite-20b-fc/3":          "a call is told as soon as its name is there: it is shown as far as it came",
	"vllm/longcat/3":                 "a call is told as soon as its name is there: it is shown as far as it came",
	"ollama/GLM46Parser/6":           "a call is told as soon as its name is there: it is shown as far as it came",
	"ollama/GLM46Parser/7":           "a call is told as soon as its name is there: it is shown as far as it came",
	"ollama/Qwen35Parser/16":         "a call is told as soon as its name is there: it is shown as far as it came",
	"ollama/MinistralParser/3":       "a call is told as soon as its name is there: it is shown as far as it came",
	"ollama/GlimmerParser/37":        "a call is told as soon as its name is there: it is shown as far as it came",
	"vllm/hermes/4":                  "nothing is lost: the section lacks only its end",
	"vllm/granite-20b-fc/4":          "a list and an object are calls alike",
	"vllm/granite/6":                 "a list and an object are calls alike",
	"vllm/llama3_json/1":             "a call without marks counts only where an answer begins",
	"vllm/xlam/4":                    "a call without marks counts only where an answer begins",
	"ollama/LagunaParser/4":          "a call without marks counts only where an answer begins",
	"vllm/longcat/4":                 "arguments are an object",
	"vllm/minimax/2":                 "thoughts are no content",
	"vllm/seed_oss/3":                "thoughts are no content",
	"vllm/seed_oss/4":                "thoughts are no content",
	"vllm/xlam/3":                    "thoughts are no content",
	"vllm/minimax/4":                 "a call without arguments is one",
	"vllm/qwen3_coder/1":             "no function is called \"get_current_weather\\n<parameter=city\"",
	"vllm/mimo/19":                   "a text that says null is kept",
	"vllm/step3p5/9":                 "a value ends where it is closed: it may hold any other mark",
	"ollama/CogitoParser/7":          "what a model makes up as a tool's answer is text",
	"ollama/CogitoParser/14":         "a mark of thoughts before all text is never part of it; others of this source agree",
	"ollama/Nemotron3NanoParser/7":   "a mark of thoughts before all text is never part of it; others of this source agree",
	"ollama/Qwen35Parser/9":          "a mark of thoughts before all text is never part of it; others of this source agree",
	"ollama/CohereParser/10":         "what holds no call is text",
	"ollama/GLM46Parser/4":           "what holds no call is text",
	"ollama/GlimmerParser/17":        "what holds no call is text",
	"ollama/DeepSeek3Parser/43":      "nothing comes after it that makes it a mark",
	"ollama/GlimmerParser/14":        "a name is what the model writes",
	"ollama/GlimmerParser/16":        "whoever asked decides about names that it does not know",
	"ollama/GlimmerParser/29":        "whoever asked decides about names that it does not know",
	"ollama/LagunaParser/8":          "both calls are there",
	"ollama/LagunaParser/10":         "a user's mark is no mark of calls",
	"ollama/LagunaParser/13":         "a user's mark is no mark of calls",
	"reasoning/glm4_moe/9":           "a thought that is cut short is one",
	"reasoning/holo2/7":              "a mark of thoughts before all text is never part of it; others of this source agree",
	"reasoning/minimax_m2_append/2":  "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/3":  "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/4":  "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/5":  "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/6":  "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/7":  "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/9":  "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/11": "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/13": "a mark of the prompt is not put before the answer",
	"reasoning/minimax_m2_append/14": "a mark of the prompt is not put before the answer",
	"reasoning/qwen3/19":             "the call is read too",
	"reasoning/gemma4/16":            "text before a thought is text, as the next case has it",
	"vllm/glm45/13":                  "other sources take values that nobody told a type of for text",
}

type stream struct {
	ID, Parser, Family, Output, Error string
	Tools                             json.RawMessage
	Steps                             []struct{ In string }
	Think                             bool
	Expect                            expect
	Streaming                         bool
	Start, End                        string
}

// signs are what templates of these parsers' models show.
var signs = map[string]string{
	"mimo": "<tool_call><parameter=", "qwen3_coder": "<tool_call><parameter=", "step3p5": "<tool_call><parameter=",
	"glm45": "<tool_call>", "glm47": "<tool_call>", "hermes": "<tool_call>", "ernie45": "<tool_call>",
	"granite": "<tool_call><|tool_call|>", "granite-20b-fc": "<function_call>", "jamba": "<tool_calls>",
	"deepseek_v32": "｜DSML｜function_calls", "deepseek_v4": "｜DSML｜tool_calls>", "deepseek_v3": "<｜tool▁call▁begin｜>", "deepseek_v31": "<｜tool▁call▁begin｜>",
	"llama3_json": "\"parameters\": ", "llama4_pythonic": "<|python_start|>", "pythonic": "<|python_start|>",
	"gemma4": "<|tool_call>", "functiongemma": "<start_function_call>", "lfm2": "<|tool_call_start|>",
	"kimi_k2": "<|tool_call_begin|>", "olmo3": "<function_calls>", "apertus": "<|tools_prefix|>",
	"hy_v3": "<tool_sep>", "hunyuan_a13b": "<tool_calls>", "longcat": "<longcat_tool_call>",
	"internlm": "<|plugin|>", "seed_oss": "<seed:tool_call>", "xlam": "[TOOL_CALLS]\"parameters\": ", "minimax": "<tool_calls>",
	"phi4_mini_json": "functools", "step3": "<steptml:",
	"CogitoParser": "<｜tool▁call▁begin｜>", "CohereParser": "<|START_ACTION|>", "DeepSeek3Parser": "<｜tool▁call▁begin｜>",
	"FunctionGemmaParser": "<start_function_call>", "Gemma4Parser": "<|tool_call>", "GLM46Parser": "<tool_call>",
	"GLM47Parser": "<tool_call>", "GlimmerParser": "atem:", "LagunaParser": "<tool_call>", "LFM2Parser": "<|tool_call_start|>",
	"MinistralParser": "[TOOL_CALLS]", "Nemotron3NanoParser": "<tool_call><parameter=", "Olmo3Parser": "<function_calls>",
	"Olmo3ThinkParser": "<think>", "Qwen35Parser": "<tool_call><parameter=", "Qwen3CoderParser": "<tool_call><parameter=",
	"Qwen3Parser": "<tool_call>",
}

func TestLikeOthers(t *testing.T) {
	for _, file := range []string{"vllm.jsonl", "ollama.jsonl"} {
		for c := range testref.Cases[stream](t, "refdata", "tools", file) {
			if c.Error != "" {
				continue
			}
			var set *Set // the test names no tools: any name may be one's
			if len(c.Tools) > len("null") {
				var err error
				set, err = ParseSet(c.Tools)
				require.NoError(t, err)
			}
			if !c.Think && c.Expect.Reasoning != nil && *c.Expect.Reasoning == "" {
				c.Expect.Reasoning = nil // what the model thinks though it was not asked is dropped elsewhere
			}
			all, pieces := c.Output, []string{c.Output}
			for _, x := range c.Steps {
				all += x.In
				pieces = append(pieces, x.In)
			}
			s := For(signs[c.Parser])
			tail := tailOf(s, all, c.Expect, c.Think)
			if w := parse(t, s, tail, set, all).wrong(c.Expect); w != "" && aside[c.ID] == "" {
				t.Errorf("%s think %v: %s\n in %q", c.ID, c.Think, w, all)
			} else if w == "" && aside[c.ID] != "" {
				t.Errorf("%s is set aside and holds", c.ID)
			}
			whole := parse(t, s, tail, set, all)
			assert.Equal(t, whole, parse(t, s, tail, set, strings.Split(all, "")...), c.ID)
			assert.Equal(t, whole, parse(t, s, tail, set, pieces...), c.ID)
		}
	}
}

// tailOf is how a prompt ended after which a model writes such a text.
func tailOf(s *Syntax, text string, want expect, think bool) string {
	if s.channels != nil {
		return s.channels.start
	}
	if want.Reasoning == nil || *want.Reasoning == "" {
		return ""
	}
	text = strings.TrimSpace(text)
	for _, t := range s.thinks {
		open, end := strings.Index(text, t.open), strings.Index(text, t.close)
		if open == 0 || open > 0 && t.anywhere {
			return ""
		}
		if end >= 0 {
			return t.open
		}
	}
	if think {
		return s.thinks[0].open
	}
	return ""
}

// TestText: what only looks like a call stays text, for tools that are told and for any.
func TestText(t *testing.T) {
	known, err := ParseSet([]byte(`[{"name": "f"}]`))
	require.NoError(t, err)
	for _, c := range []struct {
		sign, text string
		set        *Set
	}{
		{`"parameters": `, `{"name": "Alice", "age": 3}`, nil},
		{`"parameters": `, `{"name": "Alice"}`, nil},
		{`"parameters": `, `{"name": "g", "parameters": {}}`, known},
		{`"parameters": `, `[{"a": 1}]`, nil},
		{`"parameters": `, `I say {"name": "f", "parameters": {}}`, known},
		{"<|python_start|>", `[g(a=1)]`, known},
		{"<|python_start|>", `[1, 2]`, nil},
		{"<tool_call>", `a <tool_call> is a tag`, known},
		{"<tool_call>", `<tool_call>{"answer": 42}</tool_call>`, known},
		{"[TOOL_CALLS]", `[TOOL_CALLS] begins it`, known},
	} {
		for _, a := range []*answer{
			parse(t, For(c.sign), "", c.set, c.text), parse(t, For(c.sign), "", c.set, strings.Split(c.text, "")...),
		} {
			assert.Equal(t, c.text, a.content, c.text)
			assert.Empty(t, a.names, c.text)
		}
	}
}

// thoughtful are signs of the families whose marks of thoughts are their own.
var thoughtful = map[string]string{
	"gemma4": "<|tool_call>", "granite": "Here is my thought process:", "hunyuan": "<answer>", "mistral": "[TOOL_CALLS]",
}

// TestBlanksOfAThought: white space behind a thought that is not closed is the thought's, and no text of the answer.
func TestBlanksOfAThought(t *testing.T) {
	for _, text := range []string{"<think>Hm. \n", "<think>Hm.\n\n", "<think> \n"} {
		a := parse(t, For("<think>"), "", nil, text)
		require.Empty(t, a.content, "%q", text)
		b := parse(t, For("<think>"), "", nil, strings.Split(text, "")...)
		require.Empty(t, b.content, "%q by characters", text)
	}
}

// TestThoughts: where texts begin within a thought, their prompt opened it.
func TestThoughts(t *testing.T) {
	for c := range testref.Cases[stream](t, "refdata", "tools", "reasoning.jsonl") {
		s := For(thoughtful[c.Family])
		tail := tailOf(s, c.Output, c.Expect, c.Expect.Reasoning != nil)
		if c.Expect.Reasoning == nil {
			c.Expect.Reasoning = new(string)
		}
		w := parse(t, s, tail, nil, c.Output).wrong(c.Expect)
		if w != "" && aside[c.ID] == "" {
			t.Errorf("%s: %s\n in %q", c.ID, w, c.Output)
		} else if w == "" && aside[c.ID] != "" {
			t.Errorf("%s is set aside and holds", c.ID)
		}
		single := parse(t, s, tail, nil, strings.Split(c.Output, "")...)
		assert.Equal(t, parse(t, s, tail, nil, c.Output), single, c.ID)
	}
}
