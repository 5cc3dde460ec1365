package checkpoint

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// shard is a safetensors file of one tensor of two float32.
func shard(name string) []byte {
	header := fmt.Sprintf(`{%q: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}`, name)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), "abcdefgh"...)
}

// archive is a file of PyTorch whose pickle is CPython's.
func archive(t *testing.T) []byte {
	t.Helper()
	pickle, err := os.ReadFile("../torch/testdata/state.pkl")
	require.NoError(t, err)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range []struct {
		name string
		data []byte
	}{{"x/data.pkl", pickle}, {"x/data/0", []byte("0123456789abcdefghijklmn")}, {"x/data/1", []byte("ABCDEFGH")}} {
		one, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		require.NoError(t, err)
		_, err = one.Write(f.data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a[b]*") // a name that patterns must not read
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, data := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	return dir
}

// view reads a tensor.
func view(t *testing.T, f *Folder, name string) string {
	t.Helper()
	var text string
	require.NoError(t, f.View(name, func(data []byte) error {
		text = string(data)
		return nil
	}))
	return text
}

func TestOpen(t *testing.T) {
	index := []byte(`{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}`)
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  map[string]string
	}{
		{"one", map[string][]byte{"model.safetensors": shard("a")}, map[string]string{"a": "abcdefgh"}},
		{"under another name", map[string][]byte{"own.safetensors": shard("a")}, map[string]string{"a": "abcdefgh"}},
		{"shards", map[string][]byte{"model.safetensors.index.json": index, "1.safetensors": shard("a"),
			"2.safetensors": shard("b"), "3.safetensors": nil}, map[string]string{"a": "abcdefgh", "b": "abcdefgh"}},
		{"PyTorch's", map[string][]byte{"pytorch_model.bin": archive(t)},
			map[string]string{"tail": "89abcdefghijklmn", "h": "ABCDEFGH", "one": "GH"}},
		{"Mistral's", map[string][]byte{"consolidated.safetensors": shard("a"), "other.safetensors": nil},
			map[string]string{"a": "abcdefgh"}},
		{"Meta's", map[string][]byte{"consolidated.00.pth": archive(t), "consolidated.01.pth": archive(t), "x.bin": nil},
			map[string]string{"consolidated.00.pth/h": "ABCDEFGH", "consolidated.01.pth/one": "GH"}},
		{"Meta's in one", map[string][]byte{"consolidated.00.pth": archive(t)}, map[string]string{"h": "ABCDEFGH"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Open(write(t, c.files))
			require.NoError(t, err)
			defer f.Close()
			for name, want := range c.want {
				require.Equal(t, want, view(t, f, name), name)
			}
			require.ErrorContains(t, f.View("none", nil), `holds no tensor "none"`)
			text, err := f.Text("config.json")
			require.NoError(t, err)
			require.Nil(t, text)
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	index := func(name string) []byte { return fmt.Appendf(nil, `{"weight_map": {"a": %q}}`, name) }
	for _, c := range []struct {
		files map[string][]byte
		want  string
	}{
		{map[string][]byte{"model.safetensors.index.json": index("missing.safetensors")}, "no such file"},
		{map[string][]byte{"model.safetensors.index.json": index("/etc/passwd")}, `names the file "/etc/passwd"`},
		{map[string][]byte{"model.safetensors.index.json": index("..")}, `names the file ".."`},
		{map[string][]byte{"model.safetensors.index.json": []byte("{}")}, "names 0 files"},
		{map[string][]byte{"a.safetensors": shard("a"), "b.safetensors": shard("b")}, "holds 2 files of weights and no index"},
		{map[string][]byte{"model.safetensors.index.json": []byte(`{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}`),
			"1.safetensors": shard("a"), "2.safetensors": shard("a")}, `tensor "a" is also in`},
		{map[string][]byte{"x.bin": []byte("GGML")}, "is no file of PyTorch 1.6 or later"},
		{nil, "holds no weights"},
	} {
		_, err := Open(write(t, c.files))
		require.ErrorContains(t, err, c.want)
	}
	dir := write(t, map[string][]byte{"model.safetensors": shard("a")})
	_, err := Open(filepath.Join(dir, "none"))
	require.EqualError(t, err, filepath.Join(dir, "none")+": no such file or directory")
	_, err = Open(filepath.Join(dir, "model.safetensors"))
	require.ErrorContains(t, err, "model.safetensors: is a file, want the folder of a model")
}

// TestHas: a folder is a model's if one of two files says what it is.
func TestHas(t *testing.T) {
	for name, want := range map[string]bool{"config.json": true, "params.json": true, "other.json": false} {
		dir := write(t, map[string][]byte{name: []byte("{}")})
		require.Equal(t, want, Has(dir), name)
		if want {
			require.Equal(t, filepath.Join(dir, name), Config(dir))
		}
	}
	dir := write(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "config.json"), 0o755))
	require.False(t, Has(dir))
}

// A file that is cut while it is open is an error, and no crash.
func TestViewOfACutFile(t *testing.T) {
	dir := write(t, map[string][]byte{"model.safetensors": shard("a")})
	f, err := Open(dir)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, []int{2}, f.Tensors[0].Shape)
	require.Equal(t, element.F32, f.Tensors[0].Type)
	require.NoError(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 10))
	sum := byte(0)
	err = f.View("a", func(data []byte) error {
		for _, b := range data {
			sum += b
		}
		return nil
	})
	require.ErrorContains(t, err, "model.safetensors: the file was truncated")
}
