package shaders

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostBytes of packed SPIR-V are part of the program, whether or not there is a GPU.
const mostBytes = 1_500_000

func TestSize(t *testing.T) {
	files, err := fs.ReadDir(code, ".")
	require.NoError(t, err)
	all := int64(0)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		all += info.Size()
	}
	require.Positive(t, all)
	require.LessOrEqual(t, all, int64(mostBytes), "of %d shaders", len(files))
}

// TestCode: every module is there whole. Its first word is SPIR-V's.
func TestCode(t *testing.T) {
	for m := range modules {
		code := m.Code()
		require.Greater(t, len(code), 20, "%s", m)
		require.Zero(t, len(code)%4, "%s", m)
		require.Equal(t, []byte{0x03, 0x02, 0x23, 0x07}, code[:4], "%s", m)
	}
}
