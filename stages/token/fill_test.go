package token_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/token"
)

// TestFill: marks stand around the texts, which are plain, and files of a project have marks of their own if the
// vocabulary has those.
func TestFill(t *testing.T) {
	const prefix, suffix, middle, repo, file, bos = 250, 251, 252, 253, 254, 271
	m := small()
	mark := func(name string, id uint32) { m.Set("tokenizer.ggml.fim_"+name+"_token_id", id) }
	marked := func() bool {
		fills, err := token.MarksGaps(m)
		require.NoError(t, err)
		return fills
	}
	require.False(t, mustNew(t, m).FillsIn())
	require.False(t, marked())
	mark("pre", prefix)
	mark("suf", suffix)
	require.False(t, mustNew(t, m).FillsIn(), "two of three")
	require.False(t, marked(), "two of three")
	mark("mid", middle)
	require.True(t, marked())
	v := mustNew(t, m)
	encode := func(text string) []token.ID {
		ids, err := v.Encode(nil, text, token.Options{})
		require.NoError(t, err)
		return ids
	}
	join := func(all ...any) (ids []token.ID) {
		for _, x := range all {
			switch x := x.(type) {
			case int:
				ids = append(ids, token.ID(x))
			case string:
				ids = append(ids, encode(x)...)
			}
		}
		return ids
	}
	const before, after = "hell <|end|>", "}\n"
	beside := []token.Snippet{{Name: "a.go", Text: "package a"}, {Name: "b.go", Text: "package b"}}
	for _, project := range []bool{false, true} {
		if project {
			mark("rep", repo)
			mark("sep", file)
		}
		v = mustNew(t, m)
		require.True(t, v.FillsIn())
		got, err := v.Fill(nil, before, after, token.Options{AddSpecial: true, ParseSpecial: true})
		require.NoError(t, err)
		require.Equal(t, join(bos, prefix, before, suffix, after, middle), got)
		got, err = v.Fill(beside, before, "", token.Options{})
		require.NoError(t, err)
		want := join("--- a.go\npackage a\n\n", "--- b.go\npackage b\n\n", prefix, before, suffix, middle)
		if project {
			want = join(repo, "project\n", file, "a.go\npackage a", file, "b.go\npackage b", file, "this\n", prefix, before, suffix, middle)
		}
		require.Equal(t, want, got)
	}
	_, err := v.Fill(nil, "a", "b", token.Options{Stop: func() bool { return true }})
	require.ErrorIs(t, err, token.ErrStopped)
}
