//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestLibrary builds the library and programs in C against sluice.h, warnings being errors, and runs them: the example
// answers, and what is asked wrongly ends in errors. The programs find the library alone in its folder.
func TestLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything once more, as a library")
	}
	cc := testref.Tool(t, "gcc", "gcc")
	folder := t.TempDir()
	must := func(name string, words ...string) string {
		c := exec.Command(name, words...)
		c.Env = append(os.Environ(), "CGO_ENABLED=1")
		var out, faults bytes.Buffer
		c.Stdout, c.Stderr = &out, &faults
		require.NoError(t, c.Run(), "%q: %s%s", words, out.String(), faults.String())
		return out.String()
	}
	must("go", "build", "-buildmode=c-shared", "-o", filepath.Join(folder, "libsluice.so"), ".")
	compile := func(source string) string {
		program := filepath.Join(folder, "program")
		must(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-I.", "-L"+folder, "-lsluice",
			"-Wl,-rpath,$ORIGIN", "-pthread")
		return program
	}
	ask := compile("example/ask.c")
	require.Equal(t, "The capital of France is Paris.\n", must(ask))
	model := filepath.Join(folder, "m.gguf")
	require.NoError(t, os.WriteFile(model, mini.GGUF, 0o600))
	require.Equal(t, "The capital of France is Paris.\n", must(ask, model))
	said, err := exec.Command(ask, "none.gguf").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "ask: ")
	require.Contains(t, string(said), "none.gguf")

	checks := compile("testdata/checks.c")
	vectors := filepath.Join(testref.Dir(t), "fixtures", "bert.gguf")
	require.Equal(t, "all right\n", must(checks, vectors))
}
