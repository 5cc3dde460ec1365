package converttest

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Convert makes a file, in memory, of the folder of a model by a plan; tensors keep their types. It is closed when the
// test ends.
func Convert(t testing.TB, dir string, plan func(*convert.Folder) (*convert.Model, error)) *gguf.File {
	t.Helper()
	folder, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	f := &convert.Folder{Name: filepath.Base(dir), Texts: map[string][]byte{}}
	for _, name := range convert.Files() {
		text, err := folder.Text(name)
		require.NoError(t, err)
		if text != nil {
			f.Texts[name] = text
		}
	}
	for i := range folder.Tensors {
		f.Tensors = append(f.Tensors, folder.Tensors[i].Tensor)
	}
	m, err := plan(f)
	require.NoError(t, err)
	require.NotNil(t, m, dir)
	var tensors []gguf.Tensor
	for i := range m.Tensors {
		tensors = append(tensors, gguf.Tensor{Name: m.Tensors[i].Name, Type: m.Tensors[i].Own(), Shape: m.Tensors[i].Shape})
	}
	var out bytes.Buffer
	at := 0
	require.NoError(t, gguf.Write(&out, m.Meta, tensors, func(x *gguf.Tensor, w io.Writer) error {
		at++
		return m.Tensors[at-1].Write(w, x.Type, folder.View)
	}))
	made, err := gguf.Parse(filepath.Base(dir), out.Bytes())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	return made
}
