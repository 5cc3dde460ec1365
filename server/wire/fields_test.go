package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBounds: each kind of member on both sides of its bounds, and of other types. No text: it is read.
func TestBounds(t *testing.T) {
	number := func(f *Fields) any { x := float32(7); f.Number("a", -1, 2, &x); return x }
	integer := func(f *Fields) any { n := int64(7); f.Integer("a", -1, 9007199254740993, &n); return n }
	count := func(f *Fields) any { n := 7; f.Count("a", 1, 3, &n); return n }
	flag := func(f *Fields) any { b := true; f.Flag("a", &b); return b }
	text := func(f *Fields) any { s := "before"; f.Text("a", &s); return s }
	texts := func(f *Fields) any { s := []string{"before"}; f.Texts("a", 2, 3, &s); return s }
	absent := func(f *Fields) any { f.Absent("a", "leave it out"); return nil }
	object := func(f *Fields) any {
		n := 7
		f.Object("a", "an object", func(inner *Fields) { inner.Count("b", 1, 3, &n) })
		return n
	}
	for _, c := range []struct {
		read  func(*Fields) any
		given string
		want  any
		text  string
	}{
		{number, `-1`, float32(-1), ""}, {number, `2`, float32(2), ""}, {number, `null`, float32(7), ""},
		{number, `-1.001`, nil, "a is -1.001: want a number from -1 to 2"},
		{number, `2.001`, nil, "a is 2.001: want a number from -1 to 2"},
		{number, `"1"`, nil, `a is "1": want a number from -1 to 2`},
		{integer, `9007199254740993`, int64(9007199254740993), ""}, {integer, `5.0`, int64(5), ""}, {integer, `1e3`, int64(1000), ""},
		{integer, `-2`, nil, "a is -2: want an integer from -1 to 9007199254740993"},
		{integer, `0.5`, nil, "a is 0.5: want an integer from -1 to 9007199254740993"},
		{integer, `1e300`, nil, "a is 1e300: want an integer from -1 to 9007199254740993"},
		{count, `1`, 1, ""}, {count, `3`, 3, ""}, {count, `0`, nil, "a is 0: want an integer from 1 to 3"},
		{count, `4`, nil, "a is 4: want an integer from 1 to 3"}, {count, `true`, nil, "a is true: want an integer from 1 to 3"},
		{flag, `false`, false, ""}, {flag, `0`, nil, "a is 0: want true or false"},
		{text, `""`, "", ""}, {text, `null`, "before", ""}, {text, `[]`, nil, "a is []: want a string"},
		{texts, `"abc"`, []string{"abc"}, ""}, {texts, `["a","b"]`, []string{"a", "b"}, ""}, {texts, `[]`, []string{}, ""},
		{texts, `["a","b","c"]`, nil, "a has more than 2 entries: want fewer"},
		{texts, `["a","abcd"]`, nil, "a: entry 1 has 4 bytes: want 1 to 3"}, {texts, `""`, nil, "a: entry 0 has 0 bytes: want 1 to 3"},
		{texts, `5`, nil, "a is 5: want a string or a list of strings"},
		{absent, `false`, nil, ""}, {absent, `""`, nil, ""}, {absent, `null`, nil, ""},
		{absent, `1`, nil, "a is not supported here: leave it out"},
		{object, `{"b":2}`, 2, ""}, {object, `{}`, 7, ""}, {object, `null`, 7, ""},
		{object, `{"b":9}`, nil, "a.b is 9: want an integer from 1 to 3"}, {object, `[]`, nil, "a is []: want an object"},
	} {
		f := ReadFields(`{"a":`+c.given+`}`, nil)
		require.Nil(t, f.Fault)
		got := c.read(f)
		if c.text != "" {
			require.NotNil(t, f.Fault, c.given)
			require.Equal(t, c.text, f.Fault.Text)
			require.Equal(t, 400, f.Fault.Status)
			require.True(t, strings.HasPrefix(c.text, f.Fault.Param), "%s is at fault", f.Fault.Param)
			continue
		}
		require.Nil(t, f.Fault, c.given)
		require.Equal(t, c.want, got, c.given)
	}
}

// TestFirstFault: it is the one that is told, and nothing is read after it.
func TestFirstFault(t *testing.T) {
	f := ReadFields(`{"a":5,"b":6,"c":"x"}`, nil)
	f.Flag("a", new(bool))
	f.Flag("b", new(bool))
	text := "before"
	f.Text("c", &text)
	f.Object("c", "an object", func(*Fields) { t.Error("it is read") })
	require.Equal(t, "a", f.Fault.Param)
	require.Equal(t, "before", text)
}
