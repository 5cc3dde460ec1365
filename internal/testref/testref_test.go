package testref

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// told keeps what a test was told, and ends nothing.
type told struct {
	testing.TB
	failed, skipped bool
}

func (*told) Helper()                 {}
func (*told) Name() string            { return "TestTold/part of it" }
func (t *told) Fatalf(string, ...any) { t.failed = true }
func (t *told) Skipf(string, ...any)  { t.skipped = true }

// TestMissing: CI fails, but for what it is known to lack.
func TestMissing(t *testing.T) {
	for _, c := range []struct {
		ci, without string
		fails       bool
	}{
		{"", "", false}, {"", "chromium", false}, {"true", "", true}, {"true", "clients", true}, {"true", "chromiums", true},
		{"true", "chromium", false}, {"true", "clients chromium", false},
	} {
		t.Setenv("SLUICE_MISSED", "")
		t.Setenv("CI", c.ci)
		t.Setenv("SLUICE_WITHOUT", c.without)
		got := &told{}
		Missing(got, "chromium", "there is none")
		require.Equal(t, c.fails, got.failed, "%+v", c)
		require.True(t, got.failed || got.skipped)
	}
}

// TestMissed: who lacks something is run again by name where it is.
func TestMissed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missed")
	t.Setenv("SLUICE_MISSED", file)
	t.Setenv("CI", "")
	for range 2 {
		Missing(&told{}, "chromium", "there is none")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("./internal/testref TestTold\n", 2), string(text))
}

// TestTool: the first name that is found counts; without any the test is missing the first.
func TestTool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("CI", "true")
	t.Setenv("SLUICE_MISSED", "")
	t.Setenv("SLUICE_WITHOUT", "second")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "second"), nil, 0o700))
	got := &told{TB: t}
	require.Equal(t, filepath.Join(dir, "second"), Tool(got, "x", "first", "second"))
	require.False(t, got.failed || got.skipped)
	require.Empty(t, Tool(got, "x", "first", "third"))
	require.True(t, got.failed)
}
