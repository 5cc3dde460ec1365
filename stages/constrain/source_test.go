package constrain

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A form that is made again from what was written down has the same key, and the same language.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		of       Source
		yes, not string
	}{
		{Source{Kind: Object}, `{"a":1}`, `[1]`},
		{Source{Schema, []string{`{"type":"integer"}`}}, "12", "x"},
		{Source{Regex, []string{"a+b"}}, "aab", "b"},
		{Source{GBNF, []string{`root ::= "x" [0-9]`}}, "x7", "xx"},
		{Source{Choice, []string{"yes", "no"}}, "no", "maybe"},
	} {
		form := c.of.Form("field")
		require.Equal(t, "field", form.Field)
		text, err := json.Marshal(form.From)
		require.NoError(t, err)
		var again Source
		require.NoError(t, json.Unmarshal(text, &again))
		made := again.Form("other")
		require.Equal(t, form.Key, made.Key)
		compiled, err := made.Make()
		require.NoError(t, err)
		for text, want := range map[string]bool{c.yes: true, c.not: false} {
			accept, _, err := compiled.Matcher().Check(text)
			require.NoError(t, err)
			require.Equal(t, want, accept, "%s: %q", c.of.Kind, text)
		}
	}
	for _, bad := range []Source{{}, {Kind: "poem", Texts: []string{"x"}}, {Kind: Schema}, {Kind: Object, Texts: []string{"x"}}} {
		_, err := bad.Form("f").Make()
		require.ErrorContains(t, err, "texts are no form of the kind")
	}
}
