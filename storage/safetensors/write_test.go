package safetensors

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWrite: what was written is read.
func TestWrite(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, Write(&file, []Floats{{"b", []int{2, 1}, []float32{1, 2}}, {"a", nil, []float32{-3}}}))
	got, err := Parse(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	require.Len(t, got, 2)
	for _, x := range got {
		want := map[string][]byte{"b": {0, 0, 128, 63, 0, 0, 0, 64}, "a": {0, 0, 64, 192}}[x.Name]
		require.Equal(t, want, file.Bytes()[x.Offset:][:x.Size])
	}
	require.ErrorContains(t, Write(&file, []Floats{{"c", []int{3}, nil}}), "c is [3], and has 0 numbers")
}
