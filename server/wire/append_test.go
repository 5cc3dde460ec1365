package wire

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzString: what we write is one line of JSON, and encoding/json reads from it what it would read from its own.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é日本🚀", "\xff\xc3(\xe2\x82", "\u2028\u2029\ufffd", "a\xf0\x9f\x9a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ours := AppendString(nil, s)
		require.Equal(t, ours, AppendString(nil, []byte(s)))
		require.NotContains(t, string(ours), "\n")
		theirs, err := json.Marshal(s)
		require.NoError(t, err)
		var got, want string
		require.NoError(t, json.Unmarshal(ours, &got), "%s", ours)
		require.NoError(t, json.Unmarshal(theirs, &want))
		require.Equal(t, want, got)
	})
}

func TestAppendObject(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [1, "b\n"]}`: `{"a":[1,"b\n"]}`, " {\n} ": `{}`, ``: `{}`, `{"a":`: `{}`, `[1]`: `{}`, `{} {}`: `{}`, `"x"`: `{}`,
	} {
		require.Equal(t, "x"+want, string(AppendObject([]byte("x"), []byte(text))), text)
	}
}
