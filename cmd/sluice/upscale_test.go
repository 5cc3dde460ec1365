package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// pixelsOf reads a PNG, colour by colour.
func pixelsOf(t *testing.T, path string) (pixels []byte, height, width int) {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(read(t, path)))
	require.NoError(t, err)
	size := m.Bounds()
	for c := range 3 {
		for y := range size.Dy() {
			for x := range size.Dx() {
				r, g, b, _ := m.At(x, y).RGBA()
				pixels = append(pixels, byte([]uint32{r, g, b}[c]>>8))
			}
		}
	}
	return pixels, size.Dy(), size.Dx()
}

// TestUpscale: a picture becomes that of the original network, but for bytes half of the way to the next.
func TestUpscale(t *testing.T) {
	for _, c := range []struct {
		folder string
		scale  int
	}{{"rrdb_x4", 4}, {"rrdb_x2", 2}, {"rrdb_x1", 1}} {
		t.Run(c.folder, func(t *testing.T) {
			want, dir := converttest.Tensors(t, "multimodal", c.folder, "reference.safetensors"), t.TempDir()
			in, out := filepath.Join(dir, "in.png"), filepath.Join(dir, "out.png")
			shape := want["image_u8"].Shape
			writePNG(t, in, lines(want["image_u8"].Data, shape[2]*shape[3]), [2]int{shape[2], shape[3]})
			model := filepath.Join(testref.Dir(t), "multimodal", c.folder, "model.safetensors")
			o := sluice("", "upscale", "-m", model, in, "-o", out)
			require.Zero(t, o.code, o.stderr)
			require.Contains(t, o.stdout, "out.png: ")
			got, height, width := pixelsOf(t, out)
			require.Equal(t, []int{shape[2] * c.scale, shape[3] * c.scale}, []int{height, width})
			require.Len(t, got, len(want["out_u8"].Data))
			for i, b := range want["out_u8"].Data {
				require.InDelta(t, b, got[i], 1)
			}
		})
	}
}

// lines are pixels that lie colour by colour, n of each, side by side.
func lines(colours []byte, n int) (pixels []byte) {
	for i := range n {
		pixels = append(pixels, colours[i], colours[n+i], colours[2*n+i])
	}
	return pixels
}

// TestUpscaleRefuses: what is wrong is said, and no file is left.
func TestUpscaleRefuses(t *testing.T) {
	dir := t.TempDir()
	in, large := filepath.Join(dir, "in.png"), filepath.Join(dir, "large.png")
	writePNG(t, in, make([]byte, 12), [2]int{2, 2})
	writePNG(t, large, make([]byte, 3*4000*1001), [2]int{1001, 4000})
	model := filepath.Join(testref.Dir(t), "multimodal", "rrdb_x4", "model.safetensors")
	decoder := filepath.Join(testref.Dir(t), "multimodal", "vae_flux", "vae")
	out := filepath.Join(dir, "out.png")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"blend", []string{"-m", model, in, "--blend", "1.5"}, "--blend is 1.5, want 0 to 1"},
		{"no picture", []string{"-m", model, model}, "no picture that can be read"},
		{"too large", []string{"-m", model, large}, "4000 × 1001 pixels would become 16000 × 4004: want at most 64 million"},
		{"no model", []string{"-m", filepath.Join(dir, "none.safetensors"), in}, "none.safetensors"},
		{"another model", []string{"-m", decoder, in}, "no upscaler that is known (Real-ESRGAN's RRDBNet): conv_first.weight is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := sluice("", append([]string{"upscale", "-o", out}, c.args...)...)
			require.NotZero(t, o.code)
			require.Contains(t, o.stderr, c.want)
			_, err := os.Stat(out)
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
	o := sluice("", "upscale", "-m", model, in, "-o", in, "--force")
	require.NotZero(t, o.code)
	require.True(t, strings.Contains(o.stderr, "is a file that is read"), o.stderr)
}
