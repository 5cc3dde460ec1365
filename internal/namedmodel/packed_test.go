package namedmodel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// TestPackedFoldersRun: a folder that another tool packed, or that a maker's own program reads, is opened as the plain
// folder of its numbers is, tensor for tensor.
func TestPackedFoldersRun(t *testing.T) {
	for _, p := range converttest.Packings() {
		t.Run(p.Name, func(t *testing.T) {
			packed, plain := p.Folders(t)
			sameTensors(t, plain, packed)
		})
	}
	plain, originals := converttest.OriginalFolders(t)
	for name, dir := range originals {
		t.Run(name, func(t *testing.T) { sameTensors(t, plain, dir) })
	}
}

// sameTensors checks that two folders are opened as the same file.
func sameTensors(t *testing.T, one, other string) {
	t.Helper()
	want, err := OpenPath(one)
	require.NoError(t, err)
	defer want.Close()
	got, err := OpenPath(other)
	require.NoError(t, err)
	defer got.Close()
	require.Len(t, got.Tensors, len(want.Tensors))
	for i := range got.Tensors {
		x := &got.Tensors[i]
		same, ok := want.Tensor(x.Name)
		require.True(t, ok, x.Name)
		require.Equal(t, same.Type, x.Type, x.Name)
		require.NoError(t, got.View(x, func(a []byte) error {
			return want.View(same, func(b []byte) error {
				require.Equal(t, b, a, x.Name)
				return nil
			})
		}))
	}
}
