package modelfile

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
)

const whole = `# what it is
FROM llama3.2:1b
parameter temperature 0.5
PARAMETER stop "<|end|>"
PARAMETER stop END OF IT
PARAMETER num_ctx 2048
PARAMETER num_gpu 99
PARAMETER draft_num_predict 4
REQUIRES 0.12.0
PARSER qwen3
renderer qwen3

SYSTEM """You are brief.
And "kind"."""
TEMPLATE "{% for m in messages %}{{ m.content }}
{% endfor %}"
MESSAGE user Hi there
MESSAGE assistant """Hello"""
LICENSE MIT
License """two
lines"""
`

func TestParse(t *testing.T) {
	want := &Modelfile{From: "llama3.2:1b", Manner: Manner{
		Template: "{% for m in messages %}{{ m.content }}\n{% endfor %}", System: "You are brief.\nAnd \"kind\".",
		Messages: []Message{{"user", "Hi there"}, {"assistant", "Hello"}}, Licenses: []string{"MIT", "two\nlines"},
		Parameters: Parameters{{Name: "temperature", Number: 0.5}, {Name: "stop", Texts: []string{"<|end|>", "END OF IT"}},
			{Name: "num_ctx", Number: 2048}},
	}}
	m, err := Parse(whole)
	require.NoError(t, err)
	require.Equal(t, want, m)
	again, err := Parse(m.String())
	require.NoError(t, err, m.String())
	require.Equal(t, want, again)
	m, err = Parse("\ufeffFROM ./a b.gguf\r\nSYSTEM\r\n")
	require.NoError(t, err)
	require.Equal(t, &Modelfile{From: "./a b.gguf"}, m)
	m, err = Parse("FROM a\nADAPTER ./one two.gguf\nadapter b\n")
	require.NoError(t, err)
	require.Equal(t, &Modelfile{From: "a", Adapters: []string{"./one two.gguf", "b"}}, m)
	again, err = Parse(m.String())
	require.NoError(t, err)
	require.Equal(t, m, again)
}

// Errors name the line, and what was probably meant.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "there is no FROM: say which model it is made from, such as FROM llama3.2",
		"FROM a\nFORM b":                         `line 2: "FORM" is no instruction: did you mean FROM?`,
		"FROM a\n\n# x\nSYSTEM \"\"\"a\nb":       `line 4: SYSTEM: the text that begins with """ has no end: want """ at the end of a line`,
		"SYSTEM \"\"\"a\n\nb\"\"\"\nTEMPLAT x":   `line 4: "TEMPLAT" is no instruction: did you mean TEMPLATE?`,
		"FROM a\nPARAMETER temprature 1":         `line 2: "temprature" is no parameter: did you mean temperature?`,
		"FROM a\nPARAMETER top_p 2":              "line 2: top_p is 2: want a number from 0 to 1",
		"FROM a\nPARAMETER top_k 1.5":            "line 2: top_k is 1.5: want an integer from -1 to 2147483647",
		"FROM a\nPARAMETER mirostat 1":           "line 2: mirostat is 1: want an integer from 0 to 2",
		"FROM a\nPARAMETER temperature warm":     `line 2: temperature is "warm": want a number from 0 to 100`,
		"FROM a\nPARAMETER temperature":          "line 2: PARAMETER has no value",
		"FROM a\nPARAMETER stop \"\"":            "line 2: PARAMETER has no value",
		"FROM a\nFROM b":                         "line 2: FROM is there a second time: a model is made from one other",
		"FROM":                                   "line 1: FROM has no value",
		"FROM a\nADAPTER":                        "line 2: ADAPTER has no value",
		"FROM a\nMESSAGE robot hello":            `line 2: MESSAGE has the role "robot": want one of system, user, assistant`,
		"FROM a\nSYSTEM \xff":                    "it is not UTF-8",
		"FROM a\nPARAMETER repeat_last_n \"-2\"": "line 2: repeat_last_n is -2: want an integer from -1 to 2147483647",
	} {
		_, err := Parse(text)
		require.EqualError(t, err, want, text)
	}
}

func TestParameters(t *testing.T) {
	p, err := ParseParameters(`{"stop":["a","b"],"temperature":0.25,"num_thread":4,"seed":7,"top_k":null}`)
	require.NoError(t, err)
	require.Equal(t, Parameters{{Name: "seed", Number: 7}, {Name: "stop", Texts: []string{"a", "b"}},
		{Name: "temperature", Number: 0.25}}, p)
	again, err := ParseParameters(string(p.JSON()))
	require.NoError(t, err)
	require.Equal(t, p, again)
	over := Parameters{{Name: "stop", Texts: []string{"c"}}}.Over(p)
	require.Equal(t, Parameters{{Name: "stop", Texts: []string{"c"}}, {Name: "seed", Number: 7}, {Name: "temperature", Number: 0.25}},
		over)
	for text, want := range map[string]string{
		`[]`:                  "parameters: want an object",
		`{"stop":5}`:          "parameters: stop is 5: want a text, or a list of texts",
		`{"stop":[""]}`:       "parameters: stop has a text of 0 bytes",
		`{"top_p":"much"}`:    `parameters: top_p is "much": want a number from 0 to 1`,
		`{"min_p":-1}`:        "parameters: min_p is -1: want a number from 0 to 1",
		`{"temperatur":1}`:    `parameters: "temperatur" is no parameter: did you mean temperature?`,
		`{"temperature":1e9}`: "parameters: temperature is 1000000000: want a number from 0 to 100",
	} {
		_, err := ParseParameters(text)
		require.ErrorContains(t, err, want, text)
	}
	require.Equal(t, Parameters{{Name: "min_p", Number: 0.5}},
		KnownParameters(`{"new_one":1,"temperature":"hot","min_p":0.5,"stop":["x",""]}`))
}

// What a Modelfile says is found in the metadata by who runs the model.
func TestApply(t *testing.T) {
	m, err := Parse(whole + "PARAMETER num_predict 9\nPARAMETER top_k 3\n")
	require.NoError(t, err)
	var to meta.Map
	to.Set("tokenizer.chat_template", "{% own %}")
	m.Apply(&to)
	require.Equal(t, Settings{System: m.System, Stop: []string{"<|end|>", "END OF IT"}, Predict: 9, Context: 2048,
		Messages: `[{"role":"user","content":"Hi there"},{"role":"assistant","content":"Hello"}]`}, Of(&to))
	temp, err := to.Float("general.sampling.temp")
	require.NoError(t, err)
	require.Equal(t, 0.5, temp)
	k, err := to.Int("general.sampling.top_k")
	require.NoError(t, err)
	require.EqualValues(t, 3, k)
	template, err := to.String("tokenizer.chat_template")
	require.NoError(t, err)
	require.Equal(t, m.Template, template)

	require.Equal(t, Settings{}, Of(&meta.Map{}))

	base := &Manner{System: "base", Template: "b", Licenses: []string{"l"}, Messages: []Message{{"user", "x"}}}
	require.Equal(t, base, (&Manner{}).Over(base))
	require.Equal(t, "new", (&Manner{System: "new"}).Over(base).System)
}

// TestMannerOf: what a Modelfile says is found again in the metadata of the model that was made of it.
func TestMannerOf(t *testing.T) {
	m, err := Parse("FROM x\nTEMPLATE \"{{ messages }}\"\nSYSTEM Be brief.\nMESSAGE user Hi\nPARAMETER stop A\nPARAMETER stop B\n" +
		"PARAMETER temperature 0.25\nPARAMETER top_k 3\nPARAMETER num_ctx 700\n")
	require.NoError(t, err)
	var to meta.Map
	m.Apply(&to)
	got := MannerOf(&to)
	slices.SortFunc(got.Parameters, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(m.Parameters, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	require.Equal(t, &m.Manner, got)
	to.Set("general.sampling.top_p", 7.0)
	require.Len(t, MannerOf(&to).Parameters, len(m.Parameters), "a number that is none of a top_p is left out")
}

// FuzzParse: whatever a file says is an error, or a Modelfile that is written as it was read.
func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("FROM a\nSYSTEM \"a\nb\"\nPARAMETER stop \"\"\"x\"\"\"")
	f.Add("from sha256:0\r\nMESSAGE user \"\"\"\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Less(t, len(err.Error()), 1000)
			return
		}
		require.NotEmpty(t, m.From)
		var to meta.Map
		m.Apply(&to)
		Of(&to)
		p, err := ParseParameters(string(m.Parameters.JSON()))
		require.NoError(t, err)
		require.ElementsMatch(t, m.Parameters, p)
		require.NotEmpty(t, m.String())
	})
}
