package gguf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
)

// references lists the GGUF files of the reference folder.
func references(t testing.TB) []string {
	dir := testref.Dir(t)
	var all []string
	for _, folder := range []string{"fixtures", "models"} {
		paths, err := filepath.Glob(filepath.Join(dir, folder, "*.gguf"))
		require.NoError(t, err)
		require.NotEmpty(t, paths, folder)
		all = append(all, paths...)
	}
	return all
}

func TestReferenceFiles(t *testing.T) {
	for _, path := range references(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := Open(path)
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()

			// llama.cpp writes tensors one after another, each padded to 32 bytes, and nothing after them.
			info, err := os.Stat(path)
			require.NoError(t, err)
			end := f.Tensors[0].Offset
			for i := range f.Tensors {
				x := &f.Tensors[i]
				require.Equal(t, end, x.Offset, x.Name)
				end += (x.Size + 31) &^ 31
				found, ok := f.Tensor(x.Name)
				require.True(t, ok)
				require.Same(t, x, found)
				require.NoError(t, f.View(x, func(data []byte) error {
					require.Len(t, data, int(x.Size))
					return nil
				}))
			}
			require.Equal(t, info.Size(), end)
			arch, err := f.Meta.String("general.architecture")
			require.NoError(t, err)
			require.NotEmpty(t, arch)
			require.Equal(t, path, f.Part(0).Path)
			require.Equal(t, info.Size(), f.Part(0).Size)
		})
	}
}

func TestEmbeddedModel(t *testing.T) {
	f, err := Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	require.Equal(t, 3, f.Version)
	require.Equal(t, 1, f.Parts())
	tokens, err := f.Meta.Strings("tokenizer.ggml.tokens")
	require.NoError(t, err)
	require.Len(t, tokens, 8192)
	x, ok := f.Tensor("token_embd.weight")
	require.True(t, ok)
	require.Equal(t, []int{512, 8192}, x.Shape)
	require.Len(t, f.Part(0).Data, len(mini.GGUF))
	require.NoError(t, f.Close())
	require.EqualError(t, f.View(x, func([]byte) error { return nil }),
		`mini-Q4_K_M (embedded): tensor "token_embd.weight": the file is closed`)
}
