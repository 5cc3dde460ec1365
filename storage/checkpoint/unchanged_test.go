package checkpoint

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// file writes a safetensors file of one tensor of 2 × 3 values.
func file(t *testing.T, path, typ string, bytes int) {
	t.Helper()
	header := fmt.Sprintf(`{"w":{"dtype":%q,"shape":[2,3],"data_offsets":[0,%d]}}`, typ, bytes)
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	data = append(append(data, header...), "abcdefghijklmnopqrstuvwxyz"[:bytes]...)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// TestOpenUnchanged: a file's tensors, and a folder's, have their names and bytes, and GGUF's order of dimensions.
func TestOpenUnchanged(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "diffusion_pytorch_model.safetensors")
	file(t, one, "BF16", 12)
	for _, path := range []string{one, dir} {
		f, err := OpenUnchanged(path)
		require.NoError(t, err)
		require.Len(t, f.Tensors, 1)
		require.Equal(t, "w", f.Tensors[0].Name)
		require.Equal(t, []int{3, 2}, f.Tensors[0].Shape)
		require.NoError(t, f.View(&f.Tensors[0], func(data []byte) error {
			require.Equal(t, "abcdefghijkl", string(data))
			return nil
		}))
		require.NoError(t, f.Close())
	}
	file(t, one, "I16", 12)
	_, err := OpenUnchanged(one)
	require.ErrorContains(t, err, `tensor "w" is of type I16: want F32, F16 or BF16`)
	_, err = OpenUnchanged(filepath.Join(dir, "none.safetensors"))
	require.ErrorContains(t, err, "none.safetensors")
	_, err = OpenUnchanged(filepath.Join(dir, "none.gguf"))
	require.ErrorContains(t, err, "none.gguf")
}
