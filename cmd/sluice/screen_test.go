package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVoice(t *testing.T) {
	pieces := []piece{
		{text: "\n", thinking: true}, {text: "Let me", thinking: true}, {text: " see.\n\n", thinking: true},
		{text: "\n\n"}, {text: "  a\x1b[2J\n\n"}, {text: "b\n"}, {text: "\n"},
	}
	for _, c := range []struct {
		name   string
		ansi   bool
		pieces []piece
		want   string
	}{
		{"terminal", true, pieces, dim + "Let me" + normal + dim + " see." + normal + "\n\n  a[2J\n\nb\n"},
		{"file", false, pieces, "  a\x1b[2J\n\nb\n"},
		{"nothing", true, []piece{{text: "\n", thinking: true}, {text: "\n"}}, ""},
		{"only thinking", true, pieces[:3], dim + "Let me" + normal + dim + " see." + normal + "\n"},
	} {
		var w bytes.Buffer
		v := voice{pane: pane{&w, c.ansi}}
		for _, p := range c.pieces {
			require.NoError(t, v.say(p))
		}
		require.NoError(t, v.end())
		require.Equal(t, c.want, w.String(), c.name)
	}
}

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
		require.Equal(t, c.want, wrapped(c.text, c.width))
	}
}
