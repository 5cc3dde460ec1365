package jinja

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// langCase is a small template with what Jinja2 3.1.2 makes of it. testdata/lang.json is the set of the
// reference data; see the README there.
type langCase struct {
	Name      string          `json:"name"`
	Template  string          `json:"template"`
	Context   json.RawMessage `json:"context"`
	Expected  *string         `json:"expected"`
	Error     string          `json:"error"`
	ErrorKind string          `json:"error_kind"`
}

var testNow = time.Date(2026, 11, 20, 12, 34, 56, 0, time.UTC)

func langCases(t testing.TB) []langCase {
	t.Helper()
	data, err := os.ReadFile("testdata/lang.json")
	require.NoError(t, err)
	var cases []langCase
	require.NoError(t, json.Unmarshal(data, &cases))
	return cases
}

func renderJSON(source string, context []byte, limits Limits) (string, error) {
	vars, err := jsontext.Parse(string(context), nil)
	if err != nil {
		return "", err
	}
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(Of(vars).(*Dict), testNow, limits)
}

func TestLanguage(t *testing.T) {
	cases := langCases(t)
	require.Len(t, cases, 224)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			out, err := renderJSON(c.Template, c.Context, DefaultLimits())
			if c.Expected != nil {
				require.NoError(t, err, c.Template)
				require.Equal(t, *c.Expected, out, c.Template)
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e, "%s: rendered %q, but Jinja2 raises %s", c.Template, out, c.ErrorKind)
			require.Equal(t, c.ErrorKind, e.Kind.String(), "%s: %s", c.Template, e.Msg)
			if e.Kind == Raised {
				require.Equal(t, c.Error, e.Msg)
			}
		})
	}
}
