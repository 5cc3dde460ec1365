package actors

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/tools"
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
func walk(t *testing.T, g *grammar.Grammar, dice *rand.Rand) string {
	p, err := grammar.Compile(g, grammar.DefaultLimits())
	require.NoError(t, err)
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
	schemas := map[string]*jsonschema.Schema{}
	for _, tool := range list {
		schemas[tool.Name] = allowed(t, tool)
	}
	all, err := filepath.Glob(filepath.Join(testref.Dir(t), "templates", "*.jinja"))
	require.NoError(t, err)
	walks, ends := 0, 0
	for _, path := range all {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		compiled, err := chat.Compile(string(text))
		require.NoError(t, err)
		syntax := tools.Shown(string(text), compiled.RenderConversation)
		form := syntax.Form(string(text), compiled.RenderConversation)
		if form == nil {
			continue
		}
		form.Until(slices.Values([]string{"<|call|>", "<|tool_response>"}))
		dice := rand.New(rand.NewPCG(1, 2))
		for i, r := range []Tools{{Must: true}, {Must: true, Single: true}, {Must: true, Only: "clock"}, {},
			{Must: true, Only: "note"}} {
			r.List = list
			g, err := callsOf(form, &r, i == 1)
			require.NoError(t, err, path)
			for range 6 {
				said := walk(t, g, dice)
				if walks++; said == "" {
					continue
				}
				ends++
				names, arguments := called(t, syntax, list, said)
				require.NotEmpty(t, names, "%s: %q", path, said)
				require.False(t, r.Single && len(names) > 1, "%s: %q", path, said)
				for j, name := range names {
					require.True(t, r.Only == "" || r.Only == name, said)
					require.Contains(t, schemas, name, "%s: %q", path, said)
					v, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments[j]))
					require.NoError(t, err, "%s: %q in %q", path, arguments[j], said)
					if name == "note" && !r.Must {
						require.IsType(t, map[string]any{}, v) // it is not strict: any arguments
					} else {
						require.NoError(t, schemas[name].Validate(v), "%s: %q in %q", path, arguments[j], said)
					}
				}
			}
		}
	}
	require.Greater(t, walks, 1000)
	require.Greater(t, ends, walks*3/4)
}

// TestRefusedTools: a strict tool whose schema cannot be kept is refused, another is called with any arguments.
func TestRefusedTools(t *testing.T) {
	e := startMini(t)
	talk := &chat.Input{Messages: []chat.Message{{Role: "user", Content: "Hi"}}, AddGenerationPrompt: true}
	for parameters, why := range map[string]string{
		`{"type":"object","uniqueItems":true,"properties":{"a":{"type":"array","uniqueItems":true}}}`: "uniqueItems",
		`{"type":"string"}`: "arguments are an object",
	} {
		strict := []tools.Tool{{Name: "f", Parameters: parameters, Strict: true}}
		r := Request{Chat: talk, Tools: &Tools{List: strict, Must: true}}
		_, err := e.Prepare(r, nil)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "the parameters of the tool f")
		r.Tools = &Tools{List: []tools.Tool{{Name: "f", Parameters: parameters}}, Must: true}
		_, err = e.Prepare(r, nil)
		require.NoError(t, err)
	}
	g, err := grammar.GBNF(`root ::= "x"`)
	require.NoError(t, err)
	_, err = e.Prepare(Request{Chat: talk, Grammar: g, Tools: &Tools{List: []tools.Tool{clock}, Must: true}}, nil)
	require.ErrorContains(t, err, "drop one of both")
}

// TestForcedCalls: however high the temperature, a forced answer is calls of the tools alone, and the same if an actor
// dies on the way; with max_tokens it ends within one.
func TestForcedCalls(t *testing.T) {
	e := startMini(t)
	list := []tools.Tool{forecast, clock}
	schema := allowed(t, forecast)
	r := Request{Chat: &chat.Input{Messages: []chat.Message{{Role: "user", Content: "Hello."}}, AddGenerationPrompt: true},
		Sampling: bound(nil, 1).Sampling, MaxTokens: 400, Thoughts: true, Stop: []string{"{", "\n"},
		Tools: &Tools{List: list, Must: true, Single: true}}
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
