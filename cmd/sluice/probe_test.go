package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/mini"
)

// TestDoctorProbes: it measures on the file system of the model, and keeps it.
func TestDoctorProbes(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures for seconds")
	}
	model := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(model, mini.GGUF, 0o600))
	e, kept := envtest.CachingEnv(t, "doctor", "--probe", "--json", "-m", model)
	require.Equal(t, exitDone, run(e), e.Stderr)
	var s compute.Speeds
	require.NoError(t, json.Unmarshal([]byte(fmt.Sprint(e.Stdout)), &s))
	require.Positive(t, s.Disk)
	require.Positive(t, s.Memory)
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	var all []compute.Speeds
	require.NoError(t, json.Unmarshal(text, &all))
	require.Equal(t, []compute.Speeds{s}, all)
	require.Equal(t, exitUsage, sluice("", "doctor", "-m", model).code)
}
