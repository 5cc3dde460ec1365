package sluice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/stages/reply"
	"github.com/sluice-ai/sluice/stages/tools"
)

// TestPieces: thoughts and text of one event come apart, without what is empty; the end is a piece of its own.
func TestPieces(t *testing.T) {
	e := actors.Event{Text: []byte("hmmyes"), Finish: actors.Length, Parts: []reply.Part{{Kind: tools.Thought, Len: 3},
		{Kind: tools.Text, Len: 0}, {Kind: tools.Text, Len: 3}}}
	var got []Piece
	take := func(p Piece, err error) bool {
		require.NoError(t, err)
		got = append(got, p)
		return true
	}
	require.True(t, pieces(&e, &actors.Stream{}, take))
	require.Equal(t, []Piece{{Text: "hmm", Thought: true}, {Text: "yes"}, {Finish: Length}}, got)
	require.False(t, pieces(&e, &actors.Stream{}, func(Piece, error) bool { return false }))
	e.Finish, got = actors.Running, nil
	require.True(t, pieces(&e, &actors.Stream{}, take))
	require.Len(t, got, 2)
}
