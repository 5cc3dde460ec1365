package ask

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
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
		{"terminal", true, pieces, env.Dim + "Let me" + env.Normal + env.Dim + " see." + env.Normal + "\n\n  a[2J\n\nb\n"},
		{"file", false, pieces, "  a\x1b[2J\n\nb\n"},
		{"nothing", true, []piece{{text: "\n", thinking: true}, {text: "\n"}}, ""},
		{"only thinking", true, pieces[:3], env.Dim + "Let me" + env.Normal + env.Dim + " see." + env.Normal + "\n"},
	} {
		var w bytes.Buffer
		v := voice{Pane: env.Pane{W: &w, ANSI: c.ansi}}
		for _, p := range c.pieces {
			require.NoError(t, v.say(p))
		}
		require.NoError(t, v.end())
		require.Equal(t, c.want, w.String(), c.name)
	}
	var w bytes.Buffer
	v := voice{Pane: env.Pane{W: &w}, Wrapper: env.Wrapper{Width: 12}}
	for _, text := range []string{"It is a wh", "ite lie", " indeed", "\n\n"} {
		require.NoError(t, v.say(piece{text: text}))
	}
	require.NoError(t, v.end())
	require.Equal(t, "It is a\nwhite lie\nindeed\n", w.String(), "no word is broken, however it comes")
	w.Reset()
	v = voice{Pane: env.Pane{W: &w, ANSI: true}, Wrapper: env.Wrapper{Width: 12}}
	require.NoError(t, v.say(piece{text: "Hm", thinking: true}))
	require.NoError(t, v.say(piece{text: "Yes"}))
	require.NoError(t, v.end())
	require.Equal(t, env.Dim+"Hm"+env.Normal+"\n\nYes\n", w.String())
}
