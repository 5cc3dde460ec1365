package uring

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/source"
)

// TestMeasure: something is read in time, again and again; what cannot be read is an error.
func TestMeasure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, make([]byte, 3*measuredPiece+100), 0o600))
	s := source.Source{Name: path, Path: path, Size: 3*measuredPiece + 100}
	began := time.Now()
	rate, err := Measure(s, 20*time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, rate.Bytes)
	require.Less(t, time.Since(began), 30*time.Second)

	s.Size++
	_, err = Measure(s, time.Millisecond)
	require.ErrorContains(t, err, "the file has")
	_, err = Measure(source.Source{Name: "embedded", Data: []byte{1}, Size: 1}, time.Second)
	require.EqualError(t, err, "embedded: there is no file to measure reading with")
}
