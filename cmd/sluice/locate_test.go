package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A name does where a path does.
func TestRunByName(t *testing.T) {
	e, s := withStore(t, "run", "-m", "mini", "What is the capital of France?")
	keepMini(t, s, "ollama.com/library/mini:latest")
	require.Equal(t, exitDone, run(e), "%s", e.stderr)
	require.Equal(t, "The capital of France is Paris.\n", fmt.Sprint(e.stdout))

	e = inStore(s.Dir(), "inspect", "other")
	require.Equal(t, exitFailed, run(e))
	require.Contains(t, fmt.Sprint(e.stderr), "other is not in the store ("+s.Dir()+"): get it with sluice pull other")
}
