package namedmodel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
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

// TestPackageRuns: a package is opened as it is, its compressed matrices as Q4_1, under its name.
func TestPackageRuns(t *testing.T) {
	pack, plain := converttest.CgmlFolders(t)
	got, err := OpenPath(pack)
	require.NoError(t, err)
	defer got.Close()
	want, err := OpenPath(plain)
	require.NoError(t, err)
	defer want.Close()
	require.Len(t, got.Tensors, len(want.Tensors))
	types := map[quant.Type]int{}
	for i := range got.Tensors {
		types[got.Tensors[i].Type]++
	}
	require.Equal(t, map[quant.Type]int{quant.Q4_1: 14, quant.F32: 7}, types)
	name, err := got.Meta.String("general.name")
	require.NoError(t, err)
	require.Equal(t, "Model", name)
	kind, err := got.Meta.Int("general.file_type")
	require.NoError(t, err)
	require.EqualValues(t, 3, kind, "Q4_1")
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
