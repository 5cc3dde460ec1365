package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// writeFixture writes a fixture's folder to a disk, its weights in BF16, as transformers saves them.
func writeFixture(t *testing.T, x *converttest.Fixture) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range x.Folder.Texts {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	header, data := map[string]any{}, []byte(nil)
	for _, one := range x.Folder.Tensors {
		begin, kind, bytes := len(data), "U8", x.Data[one.Name]
		if one.Type == element.F32 {
			kind = "BF16"
			for i := 0; i < len(bytes); i += 4 {
				data = append(data, bytes[i+2:i+4]...)
			}
		} else {
			data = append(data, bytes...)
		}
		header[one.Name] = map[string]any{"dtype": kind, "shape": append([]int{}, one.Shape...), "data_offsets": []int{begin, len(data)}}
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	all := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), append(append(all, text...), data...), 0o644))
	return dir
}

// TestFoldersAreTheirFiles: of every fixture, what -m FOLDER runs is what its file holds, every tensor byte for byte,
// and every key: so it says the same.
func TestFoldersAreTheirFiles(t *testing.T) {
	testref.Dir(t)
	all, _ := converttest.Folders(t)
	ran := 0
	for name, tensors := range all {
		t.Run(name, func(t *testing.T) {
			x := converttest.Open(t, name, tensors)
			dir := writeFixture(t, x)
			folder, err := namedmodel.OpenFolder(dir, x.Options())
			require.NoError(t, err)
			defer folder.Close()
			require.Len(t, folder.Tensors, len(x.File.Tensors))
			for i := range x.File.Tensors {
				want := &x.File.Tensors[i]
				got, ok := folder.Tensor(want.Name)
				require.True(t, ok, want.Name)
				require.Equal(t, want.Type, got.Type, want.Name)
				require.Equal(t, want.Shape, got.Shape, want.Name)
				if strings.HasSuffix(want.Name, "ssm_a") { // another exp rounds otherwise
					require.InEpsilonSlice(t, floats(t, x.File.Bytes(want)), floats(t, folder.Bytes(got)), 1e-6)
					continue
				}
				require.True(t, string(x.File.Bytes(want)) == string(folder.Bytes(got)), "%s has other bytes", want.Name)
			}
			skip := []string{"general.name", "general.basename", "general.finetune", "general.version"}
			for _, key := range x.File.Meta.Keys() {
				want, _ := x.File.Meta.Get(key)
				if got, ok := folder.Meta.Get(key); !slices.Contains(skip, key) {
					require.True(t, ok, "%s is missing", key)
					require.Equal(t, want, got, key)
				}
			}
			if model, _ := x.File.Meta.String("tokenizer.ggml.model"); model != "llama" {
				return // how others cut text is not in their folders
			}
			run := func(m string) outcome {
				return sluice("", "run", "-m", m, "--temp", "0", "-n", "8", "--ignore-eos", "--tokens", "1,40,41,42", "--json")
			}
			want, got := run(filepath.Join(filepath.Dir(x.File.Part(0).Path), name+".gguf")), run(dir)
			require.Equal(t, exitDone, want.code, want.stderr)
			require.Equal(t, tokensOf(t, want), tokensOf(t, got), got.stderr)
			ran++
		})
	}
	require.Positive(t, ran)
}

func tokensOf(t *testing.T, o outcome) []int {
	t.Helper()
	var answer struct{ Tokens []int }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &answer), "%s", o.stderr)
	require.Len(t, answer.Tokens, 8)
	return answer.Tokens
}

func floats(t *testing.T, data []byte) []float32 {
	t.Helper()
	values := make([]float32, len(data)/4)
	require.NoError(t, quant.Dequantize(quant.F32, values, data))
	return values
}
