package paint

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/paint"
)

// TestTextsAreRemembered: what was computed of a text serves equal salts alone, until newer ones need its memory.
func TestTextsAreRemembered(t *testing.T) {
	var all texts
	computed := 0
	get := func(salt uint64, text string, size int) {
		t.Helper()
		got, err := all.get(salt, text, func() (*paint.Text, error) {
			computed++
			return &paint.Text{Rows: make([]float32, size)}, nil
		})
		require.NoError(t, err)
		require.Len(t, got.Rows, size)
	}
	get(1, "a", 10)
	get(1, "a", 10)
	require.Equal(t, 1, computed)
	get(2, "a", 20)
	get(1, "b", 30)
	require.Equal(t, 3, computed, "another salt, and another text")
	const quarter = mostRemembered / 16
	for i := range 4 {
		get(1, "a", 10)
		get(3, fmt.Sprint(i), quarter)
	}
	require.Equal(t, 7, computed, "what is asked for stays")
	require.LessOrEqual(t, all.bytes, mostRemembered)
	get(2, "a", 20)
	require.Equal(t, 8, computed, "what nobody asked for is gone")
	_, err := all.get(1, "c", func() (*paint.Text, error) { return nil, errors.New("no memory") })
	require.ErrorContains(t, err, "no memory")
	get(1, "c", 1)
}
