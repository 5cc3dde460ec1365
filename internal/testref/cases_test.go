package testref

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCases(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SLUICE_SHARED", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b.jsonl"), []byte("{\"n\":1}\n{\"n\":2}"), 0o600))
	type one struct{ N int }
	require.Equal(t, []one{{1}, {2}}, slices.Collect(Cases[one](t, "a", "b.jsonl")))
	for c := range Cases[one](t, "a", "b.jsonl") {
		require.Equal(t, one{1}, c)
		break
	}
	got := &told{TB: t}
	for range Cases[[]int](got, "a", "b.jsonl") {
		break
	}
	require.True(t, got.failed, "a line that is something else")
}
