package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// A name does where a path does.
func TestRunByName(t *testing.T) {
	e, s := envtest.WithStore(t, "run", "-m", "mini", "What is the capital of France?")
	envtest.KeepMini(t, s, "ollama.com/library/mini:latest")
	require.Equal(t, exitDone, run(e), "%s", e.Stderr)
	require.Equal(t, "The capital of France is Paris.\n", fmt.Sprint(e.Stdout))

	e = envtest.InStore(s.Dir(), "inspect", "other")
	require.Equal(t, exitFailed, run(e))
	require.Contains(t, fmt.Sprint(e.Stderr), "other is not in the store ("+s.Dir()+"), which sluice list shows: get it with sluice pull other")
}
