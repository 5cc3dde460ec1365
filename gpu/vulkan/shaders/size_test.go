package shaders

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostBytes of SPIR-V are part of the program, whether or not there is a GPU.
const mostBytes = 3_000_000

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
