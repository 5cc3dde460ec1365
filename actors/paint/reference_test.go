package paint

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// tolerance is what results may differ from the references by: the least that their README names, which is more than
// four times what float32 differs from float64 there.
const tolerance = 2e-4

// devices are those that compute pictures.
func devices(t *testing.T) []backend.Device {
	t.Helper()
	processor, err := cpu.New(2, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, processor.Close()) })
	return []backend.Device{ref.New(), processor}
}

// published opens a folder, or file, of the reference data.
func published(t *testing.T, path ...string) *gguf.File {
	t.Helper()
	f, err := checkpoint.OpenUnchanged(filepath.Join(append([]string{testref.Dir(t), "multimodal"}, path...)...))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func upscaler(t *testing.T, d backend.Device, folder string) *Upscaler {
	t.Helper()
	u, err := OpenUpscaler(d, published(t, folder, "model.safetensors"))
	require.NoError(t, err)
	return u
}

// enlarged computes a picture of floats, [3][height][width], and returns it in the same order.
func (u *Upscaler) enlarged(t *testing.T, x []float32, height, width int, o Options) []float32 {
	t.Helper()
	grid, rows, err := u.Rows(height, width, func(y, x0, c int) float32 { return x[(c*height+y)*width+x0] })
	require.NoError(t, err)
	rows, err = u.Compute(context.Background(), grid, rows, o)
	require.NoError(t, err)
	var out []float32
	for c := range 3 {
		for y := range height * u.Scale {
			for x := range width * u.Scale {
				out = append(out, u.At(grid, rows, y, x, c))
			}
		}
	}
	return out
}

// TestUpscalers: pictures are those of the original network, on the oracle and on the processor, whole and in stripes
// with the same bits; and bytes are its bytes.
func TestUpscalers(t *testing.T) {
	for _, scale := range []int{4, 2, 1} {
		folder := fmt.Sprintf("rrdb_x%d", scale)
		want := converttest.Tensors(t, "multimodal", folder, "reference.safetensors")
		shape := want["x"].Shape
		for _, d := range devices(t) {
			t.Run(folder+" "+d.Name(), func(t *testing.T) {
				u := upscaler(t, d, folder)
				require.Equal(t, scale, u.Scale)
				height, width := shape[2], shape[3]
				whole := u.enlarged(t, want["x"].Floats(), height, width, Options{Bytes: math.MaxInt64})
				converttest.Near(t, want["out"].Floats(), whole, tolerance)
				parts := 0
				striped := u.enlarged(t, want["x"].Floats(), height, width, Options{Bytes: 1, Done: func(_, n int) { parts = n }})
				require.True(t, slices.Equal(whole, striped), "stripes of a line have the same bits")
				require.Equal(t, len(u.Segments)*height/u.Cell, parts)
				b := bitmap(want["image_u8"].Data, height, width)
				large, err := u.Upscale(context.Background(), b, Options{Blend: 1})
				require.NoError(t, err)
				require.LessOrEqual(t, apart(t, bitmap(want["out_u8"].Data, height*scale, width*scale), large), 4, "of 15360 bytes")
			})
		}
	}
}

// bitmap turns a picture that lies colour by colour.
func bitmap(data []byte, height, width int) *picture.Bitmap {
	b := &picture.Bitmap{Width: width, Height: height}
	for i := range height * width {
		for c := range 3 {
			b.Pix = append(b.Pix, data[c*height*width+i])
		}
	}
	return b
}

// apart is how many bytes of two pictures differ: by one, where a value is about half of the way to the next.
func apart(t *testing.T, want, got *picture.Bitmap) (n int) {
	t.Helper()
	require.Equal(t, [2]int{want.Width, want.Height}, [2]int{got.Width, got.Height})
	for i := range want.Pix {
		if d := int(want.Pix[i]) - int(got.Pix[i]); d != 0 {
			require.LessOrEqual(t, d*d, 1, "byte %d", i)
			n++
		}
	}
	return n
}

// TestTiles: tiles with context are the reference's tiles, too.
func TestTiles(t *testing.T) {
	const tile, context = 8, 4
	for _, d := range devices(t) {
		u := upscaler(t, d, "rrdb_x4")
		r := converttest.Tensors(t, "multimodal", "rrdb_x4", "reference.safetensors")
		height, width := r["x"].Shape[2], r["x"].Shape[3]
		x, want, got := r["x"].Floats(), r["tiled_8_pad4"].Floats(), make([]float32, len(r["tiled_8_pad4"].Floats()))
		for top := 0; top < height; top += tile {
			for left := 0; left < width; left += tile {
				y0, y1 := max(0, top-context), min(height, top+tile+context)
				x0, x1 := max(0, left-context), min(width, left+tile+context)
				var part []float32
				for c := range 3 {
					for y := y0; y < y1; y++ {
						part = append(part, x[(c*height+y)*width+x0:][:x1-x0]...)
					}
				}
				out := u.enlarged(t, part, y1-y0, x1-x0, Options{})
				for c := range 3 {
					for y := top * 4; y < min(height, top+tile)*4; y++ {
						for k := left * 4; k < min(width, left+tile)*4; k++ {
							got[(c*height*4+y)*width*4+k] = out[(c*(y1-y0)*4+y-y0*4)*(x1-x0)*4+k-x0*4]
						}
					}
				}
			}
		}
		converttest.Near(t, want, got, tolerance)
	}
}

// TestBlend: a share of the result is bicubic.
func TestBlend(t *testing.T) {
	processor, err := cpu.New(2, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	u := upscaler(t, processor, "rrdb_x4")
	want := converttest.Tensors(t, "multimodal", "rrdb_x4", "reference.safetensors")
	b := bitmap(want["image_u8"].Data, want["x"].Shape[2], want["x"].Shape[3])
	shares := map[float64]*picture.Bitmap{}
	for _, share := range []float64{0, 0.75, 1} {
		shares[share], err = u.Upscale(context.Background(), b, Options{Blend: share})
		require.NoError(t, err)
	}
	smooth := b.Cubic(4)
	for i := range shares[0].Pix {
		y, x := i/3/shares[0].Width, i/3%shares[0].Width
		require.InDelta(t, 255*min(max(smooth(y, x, i%3), 0), 1), shares[0].Pix[i], 0.501)
		mixed := 0.75*float64(shares[1].Pix[i]) + 0.25*255*smooth(y, x, i%3)
		require.InDelta(t, min(max(mixed, 0), 255), shares[0.75].Pix[i], 1)
	}
}
