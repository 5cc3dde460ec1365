package tools

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

// fuzzed are answers in the form of some family, good and broken.
var fuzzed = [...]string{
	"<think>a\n</think>\n\nSo:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, {\"b\": null}]}}\n</tool_call>",
	"<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call> x",
	"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>\"</arg_value>\n</tool_call><tool_call>f\n{\"a\": 1}</tool_call>",
	"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": <tool_call>",
	"[TOOL_CALLS]f[ARGS]{\"a\": \"\\u00e9\\", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": \"123\"}]",
	"[f(a='x\\'y', b=[1, True], c={'d': None}), g()]", "<|python_start|>[f(a=",
	"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	"<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" string=\"false\">[1]</｜DSML｜parameter>",
	"<|channel|>analysis<|message|>x<|end|><|start|>assistant to=functions.f<|channel|>commentary<|message|>{\"a\": 1}<|call|>",
	" to=self<|message|>t<|eom|><|start|>assistant to=f<|message|><atem:function_calls><atem:invoke name=\"f\">",
	"<|tool_call>call:f{a:<|\"|>x<|\"|>,b:{c:1}}<tool_call|>", "{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {",
	"]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<a>]<]minimax[>[<item>1]<]minimax[>[</item>" +
		"]<]minimax[>[</a>]<]minimax[>[</invoke>",
	"<tool_call>{\" name\": \"f\", \"name\": \"g\", \"arguments\": {}}</tool_call>",
	"{\"a\": 1} is no call, and <tool_cal is none either \t",
}

// FuzzParser: how an answer is cut changes nothing, calls are numbered, arguments of whole calls are JSON, and text
// without marks comes back as it was.
func FuzzParser(f *testing.F) {
	for i, text := range fuzzed {
		for family := range families {
			f.Add(text, byte(family), byte(i), i%2 == 0)
		}
	}
	known, err := ParseSet([]byte(`[{"name": "f", "parameters": {"properties": {"a": {"type": ["integer", "string"]}}}}]`))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string, family, size byte, told bool) {
		s := For(families[int(family)%len(families)].sign)
		set := (*Set)(nil)
		if told {
			set = known
		}
		tail := ""
		if s.channels != nil {
			tail = s.channels.start
		}
		whole := parse(t, s, tail, set, text)
		require.Equal(t, whole, parse(t, s, tail, set, strings.Split(text, "")...))
		var pieces []string
		for n := int(size)%7 + 1; len(text) > n; text = text[n:] {
			pieces = append(pieces, text[:n])
		}
		pieces = append(pieces, text)
		require.Equal(t, whole, parse(t, s, tail, set, pieces...))
		if text = strings.Join(pieces, ""); len(whole.names) > 0 || s.channels != nil || thinks(s, text) {
			return
		}
		require.Equal(t, letters(text), letters(whole.content))
	})
}

// TestEmptySet: where there is nothing to call, nothing is called, whatever an answer looks like; it stays what it is
// where there is no thought in it.
func TestEmptySet(t *testing.T) {
	none, err := NewSet(nil)
	require.NoError(t, err)
	for _, text := range fuzzed {
		for i := range families {
			s := For(families[i].sign)
			a := parse(t, s, "x", none, text)
			require.Empty(t, a.names, "%s: %q", families[i].sign, text)
			if !thinks(s, text) {
				require.Equal(t, text, a.content, families[i].sign)
				require.Equal(t, a, parse(t, s, "x", none, strings.Split(text, "")...))
			}
			if s.channels != nil {
				require.Empty(t, parse(t, s, s.channels.start, none, text).names, text)
			}
		}
	}
}

// thinks says whether a text holds marks that are never told.
func thinks(s *Syntax, text string) bool {
	for _, m := range s.marks {
		if m.section == nil && strings.Contains(text, m.text) {
			return true
		}
	}
	return false
}

// letters is a text without the white space around it.
func letters(text string) string {
	return strings.TrimFunc(text, unicode.IsSpace)
}

// TestCircles: references that lead back to themselves end.
func TestCircles(t *testing.T) {
	set, err := ParseSet([]byte(`[{"name": "f", "parameters": {
		"$defs": {"n": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}, {"type": "integer"}]}, "s": {"$ref": "#/$defs/s"}},
		"properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/s"}, "c": {"$ref": "#/none/at/all"}}}}]`))
	require.NoError(t, err)
	a := parse(t, For("<tool_call>"), "", set, "<tool_call>f\n<arg_key>a</arg_key><arg_value>1</arg_value>"+
		"<arg_key>b</arg_key><arg_value>x</arg_value><arg_key>c</arg_key><arg_value>2</arg_value></tool_call>")
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.arguments[0]), &got))
	require.Contains(t, got, "a")
	require.Equal(t, "x", got["b"])
	require.Equal(t, "2", got["c"])
}

// TestHostile: however marks repeat and nest, time grows with the text.
func TestHostile(t *testing.T) {
	const size, most = 1 << 18, 20 * time.Second // some 50 ms are usual; squares of the size take minutes
	m3 := "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">"
	for _, again := range [...]string{"<tool_call>", "<tool_call>{\"name\":\"", "<tool_call>{\"name\":", "<think>", "{", "[",
		"<tool_call>{\"a\":[", "<tool_call>f<arg_key>a</arg_key><arg_value>", "<", m3, "]<]minimax[>[<a>", " ", ",",
		"<tool_call>[", "[TOOL_CALLS]", "<function=f><parameter=a>"} {
		for _, sign := range [...]string{"<tool_call>", "minimax[", "[TOOL_CALLS]", "<parameter="} {
			began := time.Now()
			parse(t, For(sign), "", nil, m3+strings.Repeat(again, size/len(again)))
			require.Less(t, time.Since(began), most, "%q of %s", again, sign)
		}
	}
}
