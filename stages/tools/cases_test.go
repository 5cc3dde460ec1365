package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

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
		Cut       string `json:"arguments_text"` // instead, where they are not whole
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
			a.content += string(p.Text)
		case Thought:
			a.reasoning += string(p.Text)
		case Call:
			require.Equal(t, len(a.names), p.Index)
			a.names, a.arguments = append(a.names, p.Name), append(a.arguments, "")
		case Arguments:
			require.Equal(t, len(a.names)-1, p.Index)
			a.arguments[p.Index] += string(p.Text)
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
		if c.Cut != "" && c.Name == a.names[i] && a.arguments[i] == c.Cut {
			continue
		}
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
	for c := range testref.Cases[roundtrip](t, "refdata", "tools", "roundtrip.jsonl") {
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
	for c := range testref.Cases[roundtrip](t, "refdata", "tools", "llamacpp.jsonl") {
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

// cut divides a text at offsets of code points.
func cut(text string, at []int) (all []string) {
	runes, from := []rune(text), 0
	for _, to := range append(at, len(runes)) {
		all = append(all, string(runes[from:to]))
		from = to
	}
	return all
}
