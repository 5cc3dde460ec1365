package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRun: types are compared with the first one, over the second half of each whole chunk. Quantiles are off by half a
// percent, as divergence has them.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, rows ...float32) {
		var b bytes.Buffer
		require.NoError(t, binary.Write(&b, binary.LittleEndian, rows))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600))
	}
	write("f16", 9, 9, 9, 9, 1, 0, 5, 5) // rows of two; only the third one has a token after it that counts
	write("same", 0, 0, 0, 0, 1, 0, 7, 7)
	write("q4", 9, 9, 9, 9, 0, 1, 5, 5)
	write("short", 1, 2)
	write("none")
	ids := filepath.Join(dir, "ids.json")
	require.NoError(t, os.WriteFile(ids, []byte("[0, 1, 0, 1, 0, 0, 0, 0, 1]"), 0o600))
	var out bytes.Buffer
	c := comparison{chunk: 4}
	require.NoError(t, c.run(&out, ids, 9, []string{"test -s {ids} && cp " + dir + "/{kv} {out}", "f16", "same=8.5", "q4"}))
	require.Equal(t, "| their same | 8.5 | 2.2553 | 1.0000 ± 0.0000 | 0.00000 | 0.0000 | 100.00 % |\n"+
		"| their q4 |  | 2.2553 | 1.0000 ± 1.0000 | 0.46099 | 0.4610 | 0.00 % |\n", out.String())
	require.ErrorContains(t, c.run(&out, ids, 1, []string{"cp " + dir + "/{kv} {out}", "f16", "short"}), "chunk 0: short: 8 bytes of logits are not 4 rows")
	require.ErrorContains(t, c.run(&out, ids, 1, []string{"cp " + dir + "/{kv} {out}", "f16", "none"}), "0 bytes of logits")
	require.ErrorContains(t, c.run(&out, ids, 1, []string{"false", "f16", "q4"}), "chunk 0: f16: exit status 1")
	require.ErrorContains(t, c.run(&out, ids, 1, []string{"false", "f16"}), "want -ids FILE")
	require.Error(t, c.run(&out, filepath.Join(dir, "none"), 1, []string{"false", "f16", "q4"}))
}
