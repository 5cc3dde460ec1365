package exec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// TestImportedHolds: data counts as lying in memory of the program if all of it does.
func TestImportedHolds(t *testing.T) {
	all := make([]byte, 300)
	s := imported{all[100:200:200], &driver.Buffer{}}
	require.True(t, s.holds(all[100:200]))
	require.True(t, s.holds(all[150:151]))
	require.EqualValues(t, 50, s.at(all[150:160]))
	for _, other := range [][]byte{all[:50], all[99:150], all[150:201], all[200:250], all[50:250]} {
		require.False(t, s.holds(other))
	}
	s.buffer = nil
	require.False(t, s.holds(all[100:200]))
}
