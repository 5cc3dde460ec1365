package env

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"short\nlines", 80, "short\nlines"},
		{"one two three four", 10, "one two\nthree\nfour"},
		{"name      what it does at length", 24, "name      what it does\n          at length"},
		{"/set [NAME VALUE]   show how tokens are chosen", 30, "/set [NAME VALUE]\n    show how tokens are\n    chosen"},
		{"a-word-that-is-longer-than-the-screen x", 10, "a-word-that-is-longer-than-the-screen\nx"},
		{"    indented text that goes on", 16, "    indented\n    text that\n    goes on"},
	} {
		require.Equal(t, c.want, Wrapped(c.text, c.width))
	}
}
