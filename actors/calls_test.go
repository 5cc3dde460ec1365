package actors

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// forecast, clock and noted are tools as requests have them.
var (
	forecast = tools.Tool{Name: "get_weather", Strict: true, Parameters: `{"type":"object","properties":{
		"place":{"type":"string","enum":["Oslo","Lima"]},"code":{"type":"string","pattern":"^[A-Z]{2}$"},
		"days":{"type":"integer","minimum":1,"maximum":7},"flags":{"type":"array","items":{"type":"boolean"},"maxItems":2},
		"unit":{"$ref":"#/$defs/unit"}},"required":["place","days"],"additionalProperties":false,
		"$defs":{"unit":{"enum":["c","f",3]}}}`}
	clock = tools.Tool{Name: "clock"}
	noted = tools.Tool{Name: "note", Parameters: `{"type":"object","properties":{"text":{"type":"string","maxLength":9}}}`}
)

// walk writes a random text of a grammar; "" if it does not end soon.
func walk(t *testing.T, p *grammar.Form, dice *rand.Rand) string {
	m, text := p.Matcher(), []byte(nil)
	const likely = "\"}]</>|'\n,: 10ae{["
	for range 3000 {
		if m.Done() && dice.IntN(2) == 0 {
			return string(text)
		}
		next := append([]byte(likely), make([]byte, 0x7F)...)
		for i := range 0x7F {
			next[len(likely)+i] = byte(i)
		}
		if dice.IntN(8) == 0 {
			next = next[len(likely):]
		}
		dice.Shuffle(len(next), func(i, j int) {
			if i >= len(likely) == (j >= len(likely)) { // those that end something come first
				next[i], next[j] = next[j], next[i]
			}
		})
		for b := 0xF4; b >= 0x80; b-- {
			next = append(next, byte(b))
		}
		took := false
		for _, b := range next {
			n, err := m.Read([]byte{b})
			require.NoError(t, err)
			if took = n == 1; took {
				text = append(text, b)
				break
			}
		}
		if !took {
			require.True(t, m.Done(), "%q leads nowhere", text)
			return string(text)
		}
	}
	return ""
}

// called are the calls that a parser finds in a text, with nothing around them.
func called(t *testing.T, s *tools.Syntax, list []tools.Tool, text string) (names, arguments []string) {
	set, err := tools.NewSet(list)
	require.NoError(t, err)
	p := s.Parser("", set)
	for _, parts := range [...]func() []tools.Part{func() []tools.Part { return p.Push([]byte(text)) }, p.End} {
		for _, x := range parts() {
			switch x.Kind {
			case tools.Call:
				names, arguments = append(names, x.Name), append(arguments, "")
			case tools.Arguments:
				arguments[x.Index] += string(x.Text)
			case tools.Text:
				require.Fail(t, "text beside calls", "%q in %q", x.Text, text)
			}
		}
	}
	return names, arguments
}

// allowed compiles what judges the arguments of a tool.
func allowed(t *testing.T, tool tools.Tool) *jsonschema.Schema {
	text := tool.Parameters
	if text == "" {
		text = `{"type":"object","maxProperties":0}`
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("s.json", v))
	s, err := c.Compile("s.json")
	require.NoError(t, err)
	return s
}

// TestForcedForms: whatever may be written in the form of any template, the parser reads calls of the request's tools
// out of it whose arguments are as their schemas want them.
func TestForcedForms(t *testing.T) {
	list := []tools.Tool{forecast, clock, noted}
	schemas, strict := map[string]*jsonschema.Schema{}, map[string]bool{}
	for _, tool := range list {
		schemas[tool.Name], strict[tool.Name] = allowed(t, tool), tool.Strict
	}
	all, err := filepath.Glob(filepath.Join(testref.Dir(t), "templates", "*.jinja"))
	require.NoError(t, err)
	ends := []string{"<|call|>", "<|calls|>", "<|tool_response>", "<|eom_id|>", "<SPECIAL_12>", "<｜end▁of▁sentence｜>"}
	walks, ended, each := 0, 0, 6
	if slowed {
		each = 1
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		compiled, err := chat.Compile(string(text))
		require.NoError(t, err)
		syntax := tools.Shown(string(text), compiled.RenderConversation)
		form := syntax.Form(string(text), compiled.RenderConversation, ends)
		if form == nil {
			continue
		}
		dice := rand.New(rand.NewPCG(1, 2))
		for i, r := range []tools.Choice{{Must: true}, {Must: true, Single: true}, {Must: true, Only: "clock"}, {},
			{Must: true, Only: "note"}} {
			r.List = list
			g, err := constrain.Calls(form, &r, i == 1).Make()
			require.NoError(t, err, path)
			for range each {
				said := walk(t, g, dice)
				if walks++; said == "" {
					continue
				}
				ended++
				names, arguments := called(t, syntax, list, said)
				require.NotEmpty(t, names, "%s: %q", path, said)
				require.False(t, r.Single && len(names) > 1, "%s: %q", path, said)
				for j, name := range names {
					require.True(t, r.Only == "" || r.Only == name, said)
					require.Contains(t, schemas, name, "%s: %q", path, said)
					v, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments[j]))
					require.NoError(t, err, "%s: %q in %q", path, arguments[j], said)
					if !strict[name] && !r.Must { // any arguments
						require.IsType(t, map[string]any{}, v)
					} else {
						require.NoError(t, schemas[name].Validate(v), "%s: %q in %q", path, arguments[j], said)
					}
				}
			}
		}
	}
	require.Greater(t, walks, 200*each)
	require.Greater(t, ended, walks*3/4)
}

// made says whether what a request's answer is bound to be can be made.
func made(t *testing.T, e *Engine, r Request) error {
	r, err := e.Prepare(r, nil)
	require.NoError(t, err)
	_, err = r.Bound().Make()
	return err
}

// TestRefusedTools: a strict tool whose schema cannot be kept is refused, another is called with any arguments.
func TestRefusedTools(t *testing.T) {
	e := startMini(t)
	talk := &chat.Input{Messages: []chat.Message{chat.Say("user", "Hi")}, AddGenerationPrompt: true}
	for parameters, why := range map[string]string{
		`{"type":"object","uniqueItems":true,"properties":{"a":{"type":"array","uniqueItems":true}}}`: "uniqueItems",
		`{"type":"string"}`: "arguments are an object",
	} {
		strict := []tools.Tool{{Name: "f", Parameters: parameters, Strict: true}}
		r := Request{Chat: talk, Tools: &tools.Choice{List: strict, Must: true}}
		err := made(t, e, r)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "the parameters of the tool f")
		r.Tools = &tools.Choice{List: []tools.Tool{{Name: "f", Parameters: parameters}}, Must: true}
		require.NoError(t, made(t, e, r))
	}
	both := Request{Chat: talk, Form: &constrain.Form{}, Tools: &tools.Choice{List: []tools.Tool{clock}, Must: true}}
	_, err := e.Prepare(both, nil)
	require.ErrorContains(t, err, "drop one of both")
}

// TestForcedCalls: however high the temperature, a forced answer is calls of the tools alone, and the same if an actor
// dies on the way; with max_tokens it ends within one.
func TestForcedCalls(t *testing.T) {
	e := startMini(t)
	list := []tools.Tool{forecast, clock}
	schema := allowed(t, forecast)
	r := Request{Chat: &chat.Input{Messages: []chat.Message{chat.Say("user", "Hello.")}, AddGenerationPrompt: true},
		Sampling: bound(nil, 1).Sampling, MaxTokens: 400, Thoughts: true, Stop: []string{"{", "\n"},
		Tools: &tools.Choice{List: list, Must: true, Single: true}}
	for seed := range uint64(6) {
		r.Sampling.Seed = seed
		want := calls(t, begin(t, e, r), func(int) {})
		require.Len(t, want, 1)
		name, arguments, _ := strings.Cut(want[0], ":")
		var v any
		require.NoError(t, json.Unmarshal([]byte(arguments), &v), want)
		if name == "get_weather" {
			require.NoError(t, schema.Validate(v), arguments)
		} else {
			require.Equal(t, "clock:{}", want[0])
		}
		for _, victim := range []string{"sampler", "scheduler"} {
			require.Equal(t, want, calls(t, begin(t, e, r), func(n int) {
				if n == 7 {
					e.crash(victim)
				}
			}), victim)
		}
	}
	r.Tools.Only, r.MaxTokens = "get_weather", 24
	cut := calls(t, begin(t, e, r), func(int) {})
	require.Len(t, cut, 1)
	require.False(t, json.Valid([]byte(strings.TrimPrefix(cut[0], "get_weather:"))), cut)
}

// calls reads an answer that is nothing but calls.
func calls(t *testing.T, s *Stream, before func(n int)) (all []string) {
	defer s.Close()
	var e Event
	for n := 0; ; n++ {
		before(n)
		if err := s.Next(t.Context(), &e); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return all
		}
		for p, text := range e.Each() {
			switch p.Kind {
			case tools.Call:
				all = append(all, p.Name+":")
			case tools.Arguments:
				all[p.Call] += string(text)
			default:
				require.Fail(t, "not a call", "%q", text)
			}
		}
	}
}

// TestStrictCalls: text and thoughts are free, and a call is kept to the name and the schema of a tool from its mark
// on, whatever the model would say, be the tool strict or not. One whose schema no grammar can keep has any arguments,
// and what goes on after its end says what it likes.
func TestStrictCalls(t *testing.T) {
	const said = "Let me see.\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"place\": \"Mars\", \"days\": 3}}\n</tool_call>"
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	v, err := token.New(&f.Meta)
	require.NoError(t, err)
	ids, err := v.Encode(nil, "Hi", token.Options{})
	require.NoError(t, err)
	script, err := v.Encode(slices.Clone(ids), said, token.Options{ParseSpecial: true})
	require.NoError(t, err)
	script = append(script, v.EOG()[0])
	for range 500 {
		script = append(script, script[len(ids)+3])
	}
	e, err := Start(t.Context(), Config{Model: Model{File: f}, Device: scripted{script: script}, Log: zerolog.Nop()})
	require.NoError(t, err)
	defer e.Close(context.Background())
	place := tools.Tool{Name: "get_weather", Parameters: `{"type":"object","properties":{"place":{"enum":["Oslo","Lima"]}},
		"required":["place"],"additionalProperties":false}`}
	other, unkept := place, place
	other.Name, unkept.Parameters = "get_time", `{"type":"object","properties":{"place":{"type":"array","uniqueItems":true}}}`
	strict := place
	strict.Strict = true
	for _, test := range []struct {
		name, called, arguments string // expressions
		tool                    tools.Tool
		goesOn                  bool
	}{
		{"strict", "^get_weather$", `^\{\s*"place"\s*:\s*"(Oslo|Lima)"`, strict, false},
		{"not strict", "^get_weather$", `^\{\s*"place"\s*:\s*"(Oslo|Lima)"`, place, false},
		{"a name that nobody declared", "^get_time$", "", other, false},
		{"a schema that cannot be kept", "^get_weather$", `^\{"place": "Mars", "days": 3\}$`, unkept, false},
		{"after its end", "^get_weather$", `^\{"place": "Mars", "days": 3\}$`, place, true},
	} {
		r := Request{Text: "Hi", MaxTokens: 90, Sampling: greedy(), Thoughts: true, IgnoreEOG: test.goesOn,
			Tools: &tools.Choice{List: []tools.Tool{test.tool}}}
		if test.goesOn {
			r.MaxTokens = len(script) - len(ids) - 501
		}
		s, text, arguments, called := begin(t, e, r), "", "", ""
		var ev Event
		for s.Next(t.Context(), &ev) == nil {
			for p, said := range ev.Each() {
				switch p.Kind {
				case tools.Text:
					text += string(said)
				case tools.Call:
					called += p.Name
				default:
					arguments += string(said)
				}
			}
		}
		s.Close()
		require.Equal(t, "Let me see.", text, test.name)
		require.Regexp(t, test.called, called, test.name)
		require.Regexp(t, test.arguments, arguments, test.name)
	}
}

// TestNoTools: without tools, what looks like a call is text.
func TestNoTools(t *testing.T) {
	const said = `<tool_call>{"name": "f", "arguments": {}}</tool_call>`
	e, r := saying(t, "one", said)
	_, text := listen(t, begin(t, e, r), func(int) {})
	require.Equal(t, said, text)
}

// FuzzCalls: whatever a schema is, calls of its tool get a grammar in time, or an error.
func FuzzCalls(f *testing.F) {
	for _, tool := range []tools.Tool{forecast, noted} {
		f.Add(tool.Parameters, true)
	}
	f.Add(`{"properties":{"a":{"$ref":"#/properties/a"},"b":{"anyOf":[{"$ref":"#/properties/b"}]}}}`, false)
	f.Add(`{"properties":{"a":{"type":"string","minLength":-1,"maxLength":1e300,"pattern":"(a{9}){9}"},"a":1},"required":[1]}`, true)
	f.Add(`{"properties":{"a":{"type":["string","null"],"enum":[null,"x",{"y":1}]},"b":true,"c":{"const":{}}}}`, false)
	f.Add(`{"properties":{"":{}},"$ref":"#"}`, true)
	forms := []*tools.Form{
		{Open: "<tool_call>\n{\"name\": \"", Mid: "\", \"arguments\": ", Next: "},{\"name\": \"", Close: "}"},
		{Open: "<f=", Next: "</p></f><f=", Close: "</p></f>", Elements: &tools.Elements{
			First: "><p=", Set: ">", And: "</p><p=", Without: "</p>", NoneNext: "></f><f=", NoneClose: "></f>"}},
		{Open: "[", Next: "), ", Close: ")]", Elements: &tools.Elements{
			First: "(", Set: "=", And: ", ", JSON: true, NoneNext: "(), ", NoneClose: "()]"}},
	}
	f.Fuzz(func(t *testing.T, parameters string, strict bool) {
		if !json.Valid([]byte(parameters)) || !strings.HasPrefix(parameters, "{") || len(parameters) > 1<<16 {
			return // requests with such are refused before
		}
		for _, form := range forms {
			for _, must := range []bool{false, true} {
				r := &tools.Choice{List: []tools.Tool{{Name: "f", Parameters: parameters, Strict: strict}}, Must: must}
				_, err := constrain.Calls(form, r, false).Make()
				if err != nil {
					require.ErrorAs(t, err, new(*refusal.Error))
					require.True(t, strict || must)
				}
			}
		}
	})
}
