package measure

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A command that leaves something behind is not waited for beyond its end, and one that prints on and on takes no
// memory for it.
func TestExecute(t *testing.T) {
	began := time.Now()
	output, err := execute(t.Context(), []string{"sh", "-c", "sleep 20 & echo done"})
	require.NoError(t, err)
	require.Equal(t, "done\n", string(output))
	require.Less(t, time.Since(began), 15*time.Second)

	output, err = execute(t.Context(), []string{"sh", "-c", "yes | head -c 4000000; echo end"})
	require.NoError(t, err)
	require.Len(t, output, mostOutput)
	require.Contains(t, string(output[mostOutput-9:]), "y\ny\nend\n")

	_, err = execute(t.Context(), []string{"false"})
	require.EqualError(t, err, "exit status 1", "it says no more")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = execute(ctx, []string{"sleep", "20"})
	require.ErrorIs(t, err, context.Canceled)
}
