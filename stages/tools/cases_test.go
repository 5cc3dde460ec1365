package tools

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// expect is what a case wants.
type expect struct {
	Content   *string `json:"content"`
	Reasoning *string `json:"reasoning"`
	ToolCalls []struct {
		Name      string `json:"name"`
		Arguments any    `json:"arguments"`
	} `json:"tool_calls"`
}

// answer is what parts join to.
type answer struct {
	content, reasoning string
	names, arguments   []string
}

func (a *answer) add(t require.TestingT, parts []Part) {
	for _, p := range parts {
		switch p.Kind {
		case Text:
			a.content += p.Text
		case Thought:
			a.reasoning += p.Text
		case Call:
			require.Equal(t, len(a.names), p.Index)
			a.names, a.arguments = append(a.names, p.Name), append(a.arguments, "")
		case Arguments:
			require.Equal(t, len(a.names)-1, p.Index)
			a.arguments[p.Index] += p.Text
		}
	}
}

// parse reads an answer cut as given.
func parse(t require.TestingT, s *Syntax, tail string, set *Set, pieces ...string) *answer {
	p, a := s.Parser(tail, set), &answer{}
	for _, x := range pieces {
		a.add(t, p.Push([]byte(x)))
	}
	a.add(t, p.End())
	return a
}

func lines[T any](t *testing.T, name string) (all []T) {
	f, err := os.Open(filepath.Join(testref.Dir(t), "refdata", "tools", name))
	require.NoError(t, err)
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Buffer(nil, 1<<24); s.Scan(); {
		var x T
		require.NoError(t, json.Unmarshal(s.Bytes(), &x))
		all = append(all, x)
	}
	return all
}

func syntaxOf(t *testing.T, template string) *Syntax {
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "templates", filepath.Base(template)))
	require.NoError(t, err)
	return For(string(text))
}

// wrong says how an answer differs from what a case wants; "" if it does not.
func (a *answer) wrong(want expect) string {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return strings.TrimSpace(*s)
	}
	if got := strings.TrimSpace(a.content); got != text(want.Content) {
		return "content: want " + text(want.Content) + "\n got " + got
	}
	if got := strings.TrimSpace(a.reasoning); want.Reasoning != nil && got != text(want.Reasoning) {
		return "reasoning: want " + text(want.Reasoning) + "\n got " + got
	}
	if len(a.names) != len(want.ToolCalls) {
		return "calls: got " + strings.Join(a.names, ",") + strings.Join(a.arguments, ",")
	}
	for i, c := range want.ToolCalls {
		var got any
		if err := json.Unmarshal([]byte(a.arguments[i]), &got); err != nil {
			return "arguments: " + a.arguments[i] + ": " + err.Error()
		}
		if c.Name != a.names[i] || !reflect.DeepEqual(c.Arguments, got) {
			x, _ := json.Marshal(c.Arguments)
			return "call: want " + c.Name + string(x) + "\n got " + a.names[i] + a.arguments[i]
		}
	}
	return ""
}

type roundtrip struct {
	ID, Template string
	Tail         string `json:"prompt_tail"`
	Output       string
	Expect       expect
	Tools        json.RawMessage
	Partial      bool
	Options      struct {
		Reasoning string
		Continue  any `json:"continue_final_message"`
		Schema    any `json:"json_schema"`
	}
	Cuts map[string][]int
}

func TestRoundTrips(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testref.Dir(t), "refdata", "tools", "tools.json"))
	require.NoError(t, err)
	set, err := ParseSet(data)
	require.NoError(t, err)
	bad := map[string]int{}
	n := 0
	for _, c := range lines[roundtrip](t, "roundtrip.jsonl") {
		s := syntaxOf(t, c.Template)
		n++
		if w := parse(t, s, c.Tail, set, c.Output).wrong(c.Expect); w != "" {
			if bad[c.Template]++; bad[c.Template] < 3 {
				t.Errorf("%s: %s\n in %q", c.ID, w, c.Output)
			}
			continue
		}
		if w := parse(t, s, c.Tail, set, strings.Split(c.Output, "")...).wrong(c.Expect); w != "" {
			t.Errorf("%s in single characters: %s", c.ID, w)
		}
		for _, cuts := range c.Cuts {
			if w := parse(t, s, c.Tail, set, cut(c.Output, cuts)...).wrong(c.Expect); w != "" {
				t.Errorf("%s cut: %s", c.ID, w)
			}
		}
	}
	t.Log(n, bad)
}

// TestLikeLlamaCpp: what its own tests want.
func TestLikeLlamaCpp(t *testing.T) {
	for _, c := range lines[roundtrip](t, "llamacpp.jsonl") {
		set, err := ParseSet(c.Tools)
		require.NoError(t, err)
		s, want := syntaxOf(t, c.Template), c.Expect
		if why := aside[c.ID]; why != "" {
			continue
		}
		whole := parse(t, s, c.Tail, set, c.Output)
		if c.Options.Continue != nil { // ours is only what the model went on with
			whole.content, whole.reasoning = ending(whole.content, *want.Content), ending(whole.reasoning, *want.Reasoning)
		}
		if c.Options.Reasoning == "none" && whole.reasoning != "" { // thoughts stay in the text
			want.Reasoning, want.Content = nil, &whole.content
		}
		if w := whole.wrong(want); w != "" && !c.Partial {
			t.Errorf("%s %+v: %s\n in %q after %q", c.ID, c.Options, w, c.Output, c.Tail)
		}
		single := parse(t, s, c.Tail, set, strings.Split(c.Output, "")...)
		again := parse(t, s, c.Tail, set, c.Output)
		require.Equal(t, again, single, c.ID)
	}
}

// ending is what a text should be of which only the end is there.
func ending(got, want string) string {
	if strings.HasSuffix(strings.TrimSpace(want), strings.TrimSpace(got)) {
		return want
	}
	return got
}

// aside are cases that want something else than we do.
var aside = map[string]string{
	"vllm/deepseek_v31/2": "text behind calls is text",
	"vllm/deepseek_v32/1": "a parameter that is called arguments is one",
	"llamacpp/mistralai-Ministral-3-14B-Reasoning-2512/7": "a schema's answer has no fence with us",
	"llamacpp/Apriel-1.6-15b-Thinker-fixed/1":             "the first words of the thought are the prompt's",
	"llamacpp/Apriel-1.6-15b-Thinker-fixed/2":             "the first words of the thought are the prompt's",
	"llamacpp/Apriel-1.6-15b-Thinker-fixed/4":             "nothing in the prompt's tail says that it ends in a thought",
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
	"deepseek_v32": "｜DSML｜", "deepseek_v4": "｜DSML｜", "deepseek_v3": "<｜tool▁call▁begin｜>", "deepseek_v31": "<｜tool▁call▁begin｜>",
	"llama3_json": "\"parameters\": ", "llama4_pythonic": "<|python_start|>", "pythonic": "<|python_start|>",
	"gemma4": "<|tool_call>", "functiongemma": "<start_function_call>", "lfm2": "<|tool_call_start|>",
	"kimi_k2": "<|tool_call_begin|>", "olmo3": "<function_calls>", "apertus": "<|tools_prefix|>",
	"hy_v3": "<tool_sep>", "hunyuan_a13b": "<tool_calls>", "longcat": "<longcat_tool_call>",
	"internlm": "<|plugin|>", "seed_oss": "<seed:tool_call>", "xlam": "[TOOL_CALLS]", "minimax": "<tool_calls>",
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
		bad := map[string]int{}
		for _, c := range lines[stream](t, file) {
			if aside[c.ID] != "" || c.Error != "" {
				continue
			}
			if len(c.Tools) == 0 || string(c.Tools) == "null" {
				c.Tools = []byte("[]")
			}
			set, err := ParseSet(c.Tools)
			require.NoError(t, err)
			all, pieces := c.Output, []string{}
			for _, x := range c.Steps {
				all += x.In
				pieces = append(pieces, x.In)
			}
			s := For(signs[c.Parser])
			tail := tailOf(s, all, c.Expect, c.Think)
			if w := parse(t, s, tail, set, all).wrong(c.Expect); w != "" {
				if bad[c.Parser]++; bad[c.Parser] < 4 {
					t.Errorf("%s think %v: %s\n in %q", c.ID, c.Think, w, all)
				}
			}
			assert.Equal(t, parse(t, s, tail, set, all), parse(t, s, tail, set, strings.Split(all, "")...), c.ID)
		}
		t.Log(file, bad)
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
	for _, t := range s.thinks {
		open, end := strings.Index(text, t.open), strings.Index(text, t.close)
		if open >= 0 && (end < 0 || open < end) {
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

// cut divides a text at offsets of code points.
func cut(text string, at []int) (all []string) {
	runes, from := []rune(text), 0
	for _, to := range append(at, len(runes)) {
		all = append(all, string(runes[from:to]))
		from = to
	}
	return all
}
