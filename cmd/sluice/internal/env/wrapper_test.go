package env

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWrapper(t *testing.T) {
	for _, c := range []struct {
		width      int
		text, want string
	}{
		{12, "one two three four", "one two\nthree four"},
		{12, "one two thre four", "one two thre\nfour"},
		{12, "a\n  b  c\n\nd ", "a\n  b  c\n\nd"},
		{12, "see https://example.org/a/b now", "see\nhttps://example.org/a/b\nnow"},
		{8, "羊驼羊驼羊驼", "羊驼羊驼\n羊驼"},
		{4, "   羊a", "羊a"},
		{0, "one two three four ", "one two three four "},
	} {
		w := &Wrapper{Width: c.width}
		require.Equal(t, c.want, w.Take(c.text)+w.Rest(), "%d", c.width)
	}
}

// However a text is cut, it is wrapped alike: no line is wider than the screen, and only blanks become line breaks.
func TestWrapperKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(4, 40).Draw(t, "width")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab 羊\n")), 0, 200, -1).Draw(t, "text")
		whole := &Wrapper{Width: width}
		want := whole.Take(text) + whole.Rest()
		pieces, got, rest := &Wrapper{Width: width}, "", []rune(text)
		for len(rest) > 0 {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got += pieces.Take(string(rest[:n]))
			rest = rest[n:]
		}
		got += pieces.Rest()
		require.Equal(t, want, got)
		for line := range strings.SplitSeq(got, "\n") {
			short := !slices.ContainsFunc(strings.Fields(line), func(word string) bool { return columns(word) >= width-1 })
			require.True(t, !short || columns(strings.TrimRight(line, " ")) <= width, "%q", got)
		}
		bare := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
		require.Equal(t, bare(text), bare(got))
	})
}
