package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeywordsTogether: what the standard's tests and real schemas do not put together.
func TestKeywordsTogether(t *testing.T) {
	for _, c := range []struct {
		schema       string
		takes, leave []string
	}{
		{`{"anyOf":[{"const":1},{"type":"array","items":{"$ref":"#/anyOf/0"}}]}`, []string{"1", "[1,1]"}, []string{"2", "[2]"}},
		{`{"type":"array","not":{"contains":{"const":1},"maxContains":2}}`, []string{"[]", "[2]", "[1,1,1]"}, []string{"[1]", "[1,2,1]"}},
		{`{"type":"array","not":{"contains":{"const":1},"minContains":2}}`, []string{"[]", "[1]", "[1,2]"}, []string{"[1,1]", "[1,2,1]"}},
	} {
		p, err := program(c.schema, Options{})
		require.NoError(t, err, c.schema)
		for want, texts := range map[bool][]string{true: c.takes, false: c.leave} {
			for _, text := range texts {
				accept, _, err := p.Matcher().Check(text)
				require.NoError(t, err)
				require.Equal(t, want, accept, "%s: %s", c.schema, text)
			}
		}
	}
}
