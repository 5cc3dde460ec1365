package serve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// TestAbandoned: a hang-up ends a server only if the terminal that it was started from is there no more.
func TestAbandoned(t *testing.T) {
	e := envtest.NewEnv("")
	there := true
	e.IsTerminal = func(stream any) bool { return there && stream == any(e.Stderr) }
	r := newReloader(&Serve{}, e, nil, &loader{models: listed{}}, nil)
	require.False(t, r.abandoned())
	there = false
	require.True(t, r.abandoned())
	require.False(t, newReloader(&Serve{}, e, nil, &loader{models: listed{}}, nil).abandoned(), "a service has none")
}
