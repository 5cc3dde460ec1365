package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// draftFolder is the folder of the small model that draft-bf16.gguf was made from.
func draftFolder(t *testing.T) string { return filepath.Join(testref.Dir(t), "models", "draft-hf") }

// TestConvert: the file is that of llama.cpp's converter to the last byte, and nothing is left of a failure.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "draft.gguf")
	o := sluice("", "convert", "--name", "sluice-mini-draft", draftFolder(t), "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, path+": BF16, 5.2 M parameters in 10.0 MiB\n", o.stdout)
	want := read(t, filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf"))
	require.True(t, string(want) == string(read(t, path)), "the files differ")

	o = sluice("", "convert", draftFolder(t), "-o", path)
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "is there already")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--type", "Q9"}, exitUsage, `"Q9" is no file type`},
		{[]string{"--pre", "nonsense"}, exitFailed, "nonsense"},
	} {
		o := sluice("", append([]string{"convert", draftFolder(t), "-o", path + "2"}, c.args...)...)
		require.Equal(t, c.code, o.code, o.stderr)
		require.Contains(t, o.stderr, c.want)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing half written is left")
}

// TestConvertTypes: another type is what quantize makes of the same model.
func TestConvertTypes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"Q8_0", "F16"} {
		direct, again := filepath.Join(dir, name+".gguf"), filepath.Join(dir, name+"-again.gguf")
		o := sluice("", "convert", "--type", name, "--name", "sluice-mini-draft", draftFolder(t), "-o", direct)
		require.Equal(t, exitDone, o.code, o.stderr)
		o = sluice("", "quantize", filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf"), again, name)
		require.Equal(t, exitDone, o.code, o.stderr)
		one, err := gguf.Open(direct)
		require.NoError(t, err)
		defer one.Close()
		two, err := gguf.Open(again)
		require.NoError(t, err)
		defer two.Close()
		for i := range two.Tensors {
			want := &two.Tensors[i]
			got, ok := one.Tensor(want.Name)
			require.True(t, ok)
			require.Equal(t, want.Type, got.Type, want.Name)
			require.True(t, string(two.Bytes(want)) == string(one.Bytes(got)), want.Name)
		}
		kind, _ := one.Meta.Int("general.file_type")
		again2, _ := two.Meta.Int("general.file_type")
		require.Equal(t, again2, kind)
	}
}

func TestConvertRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no weights", map[string]string{"config.json": "{}"}, "holds no weights: want model.safetensors"},
		{"an index that climbs", map[string]string{"model.safetensors.index.json": `{"weight_map": {"a": "../b"}}`},
			`names the file "../b": want names of files in the same folder`},
		{"a short file", map[string]string{"model.safetensors": "abc"}, "has 3 bytes, fewer than the 8"},
		{"no configuration", map[string]string{"model.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}"},
			"config.json: is missing or empty"},
		{"an unknown model", map[string]string{"model.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}",
			"config.json": `{"architectures": ["Dreams"]}`}, `architectures is ["Dreams"], want one of`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
			o := sluice("", "convert", dir, "-o", filepath.Join(dir, "x.gguf"))
			require.Equal(t, exitFailed, o.code)
			require.Contains(t, o.stderr, c.want)
			require.NoFileExists(t, filepath.Join(dir, "x.gguf"))
		})
	}
}
