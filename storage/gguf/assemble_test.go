package gguf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/mapped"
)

// A model of a file of another format and of memory: tensors are found, and what was given is given back once.
func TestAssemble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, os.WriteFile(path, []byte("....abcdefgh"), 0o644))
	freed := 0
	assemble := func(tensors ...Tensor) (*File, error) {
		m, err := mapped.Open(path)
		require.NoError(t, err)
		keys := new(meta.Map)
		keys.Set("general.architecture", "x")
		return Assemble("folder", keys, []Piece{{Path: path, Mapping: m}, {Data: []byte("12345678"), Free: func([]byte) error {
			freed++
			return nil
		}}}, tensors)
	}
	two := func(part int, offset int64) Tensor {
		return Tensor{Name: "t", Type: quant.F32, Shape: []int{2}, Part: part, Offset: offset}
	}
	f, err := assemble(two(0, 4))
	require.NoError(t, err)
	one, ok := f.Tensor("t")
	require.True(t, ok)
	require.NoError(t, f.View(one, func(data []byte) error {
		require.Equal(t, "abcdefgh", string(data))
		return nil
	}))
	require.Equal(t, path, f.Part(0).Path)
	require.NotNil(t, f.Part(0).Info)
	require.Equal(t, "12345678", string(f.Part(1).Data))
	require.True(t, f.Meta.Has("general.architecture"))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	require.Equal(t, 1, freed)
	require.NoError(t, f.Close())
	require.Equal(t, 1, freed)

	for _, c := range []struct {
		tensors []Tensor
		want    string
	}{
		{[]Tensor{two(0, 5)}, `folder: tensor "t": needs 8 bytes from 5 on, and there are 12`},
		{[]Tensor{two(1, -1)}, "needs 8 bytes from -1 on, and there are 8"},
		{[]Tensor{two(2, 0)}, "is in part 2 of 2"},
		{[]Tensor{two(0, 4), two(1, 0)}, "is listed twice"},
		{[]Tensor{{Name: "t", Type: quant.Q8_0, Shape: []int{7}}}, "row of 7 values"},
	} {
		freed = 0
		_, err := assemble(c.tensors...)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, 1, freed, "the pieces are its own even so")
	}
}
