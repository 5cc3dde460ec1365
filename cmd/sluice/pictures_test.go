package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

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
			pictures := converttest.Tensors(t, "multimodal", c.folder, c.processor+".safetensors")
			for i, size := range c.sizes {
				path := filepath.Join(t.TempDir(), "picture.png")
				writePNG(t, path, pictures[fmt.Sprintf("image_%d_u8", i)].Data, size)
				args = append(args, "--image", path)
			}
			want, ids := converttest.Tensors(t, "multimodal", c.folder, "reference.safetensors"), []string(nil)
			for _, id := range want["ids"].IDs() {
				ids = append(ids, fmt.Sprint(id))
			}
			out := filepath.Join(t.TempDir(), "logits.f32")
			o := sluice("", append(args, "--tokens", strings.Join(ids, ","), "-o", out)...)
			require.Zero(t, o.code, o.stderr)
			got, err := os.ReadFile(out)
			require.NoError(t, err)
			require.Len(t, got, len(want["logits"].Data))
			require.InDeltaSlice(t, want["logits"].Floats(), converttest.Tensor{Data: got}.Floats(), 5e-4)
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
