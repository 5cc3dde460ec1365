package nearest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	require.Equal(t, "did you mean keep-alive?", Word("keep_alive", []string{"kv", "keep-alive"}))
	require.Equal(t, "there are kv, ctx", Word("completely-different", []string{"kv", "ctx"}))
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ram", "rma", 2}, {"same", "same", 0}} {
		require.Equal(t, c.want, edits(c.a, c.b), "%s %s", c.a, c.b)
	}
}
