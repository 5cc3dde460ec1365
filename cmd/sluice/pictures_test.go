package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/safetensors"
)

func reference(t *testing.T, path ...string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{testref.Dir(t), "multimodal"}, path...)...))
	require.NoError(t, err)
	list, err := safetensors.Parse(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, x := range list {
		all[x.Name] = data[x.Offset:][:x.Size]
	}
	return all
}

// TestLogitsOfPictures: logits --image makes of files, and of ids with places for rows, the logits of transformers.
func TestLogitsOfPictures(t *testing.T) {
	for _, c := range []struct {
		folder, processor string
		sizes             [][2]int // height and width of its pictures
	}{
		{"llava", "processor_exact", [][2]int{{40, 40}}}, {"gemma3_vision", "processor_exact", [][2]int{{64, 64}}},
		{"qwen25vl_2img", "processor", [][2]int{{48, 80}, {32, 48}}}, {"qwen3vl", "processor", [][2]int{{48, 80}}},
	} {
		t.Run(c.folder, func(t *testing.T) {
			model := filepath.Join(testref.Dir(t), "multimodal", strings.TrimSuffix(c.folder, "_2img"))
			args := []string{"logits", "-m", model, "--device", "cpu", "--kv", "f32"}
			pictures := reference(t, c.folder, c.processor+".safetensors")
			for i, size := range c.sizes {
				path := filepath.Join(t.TempDir(), "picture.png")
				writePNG(t, path, pictures[fmt.Sprintf("image_%d_u8", i)], size)
				args = append(args, "--image", path)
			}
			want, ids := reference(t, c.folder, "reference.safetensors"), []string(nil)
			for at := want["ids"]; len(at) > 0; at = at[8:] {
				ids = append(ids, fmt.Sprint(binary.LittleEndian.Uint64(at)))
			}
			out := filepath.Join(t.TempDir(), "logits.f32")
			o := sluice("", append(args, "--tokens", strings.Join(ids, ","), "-o", out)...)
			require.Zero(t, o.code, o.stderr)
			got, err := os.ReadFile(out)
			require.NoError(t, err)
			require.Len(t, got, len(want["logits"]))
			for i := 0; i < len(got); i += 4 {
				a := math.Float32frombits(binary.LittleEndian.Uint32(got[i:]))
				require.InDelta(t, math.Float32frombits(binary.LittleEndian.Uint32(want["logits"][i:])), a, 5e-4)
			}
		})
	}
	o := sluice("", "logits", "--image", "none.png", "--tokens", "1", "-o", filepath.Join(t.TempDir(), "x"))
	require.NotZero(t, o.code)
	require.Contains(t, o.stderr, "none.png")
}

func writePNG(t *testing.T, path string, pixels []byte, size [2]int) {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, size[1], size[0]))
	for i := range size[0] * size[1] {
		m.SetNRGBA(i%size[1], i/size[1], color.NRGBA{pixels[3*i], pixels[3*i+1], pixels[3*i+2], 255})
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
}
