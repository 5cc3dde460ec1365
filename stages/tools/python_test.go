package tools

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Strings that a template writes between single quotes as they are keep their backslashes, wherever the answer is cut.
func TestBareStrings(t *testing.T) {
	of := func(write string) *Syntax {
		return For(`{{ "List of tools: [" }}{{ "<|tool_call_start|>[" }}{{ ` + write + ` }}{{ "]<|tool_call_end|>" }}`)
	}
	bare, escaped := of(bareStrings), of("arg_value | tojson")
	set, err := ParseSet([]byte(`[{"type":"function","function":{"name":"f","parameters":{}}}]`))
	require.NoError(t, err)
	for _, c := range []struct {
		syntax      *Syntax
		value, want string
	}{
		{bare, `'C:\new\table'`, `"C:\\new\\table"`},
		{bare, `'C:\'`, `"C:\\"`},
		{bare, `'\d+\n'`, `"\\d+\\n"`},
		{bare, `'it\'s'`, `"it's"`},
		{bare, `['a\b', 'c\']`, `["a\\b", "c\\"]`},
		{bare, `"a\nb"`, `"a\nb"`},
		{escaped, `'a\nb'`, `"a\nb"`},
		{escaped, `'it\'s'`, `"it's"`},
	} {
		text := `<|tool_call_start|>[f(a=` + c.value + `, b=1)]<|tool_call_end|>`
		for at := range text {
			got := parse(t, c.syntax, "", set, text[:at], text[at:])
			require.Equal(t, []string{`{"a": ` + c.want + `, "b": 1}`}, got.arguments, "%s at %d", text, at)
		}
		got := parse(t, c.syntax, "", set, strings.Split(text, "")...)
		require.Equal(t, []string{`{"a": ` + c.want + `, "b": 1}`}, got.arguments, text)
	}
}
