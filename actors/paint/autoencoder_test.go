package paint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/picture"
)

func autoencoder(t *testing.T, d backend.Device, folder string) *Autoencoder {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", folder, "vae", "config.json"))
	require.NoError(t, err)
	s, err := pixels.ReadSettings(text)
	require.NoError(t, err)
	a, err := OpenAutoencoder(Room{Device: d}, published(t, folder, "vae"), s)
	require.NoError(t, err)
	return a
}

// cells lays out a picture of so many channels, [channels][height][width], as rows that are cells.
func cells(x []float32, channels, height, width, side int) (grid ir.Grid, rows []float32) {
	grid = ir.Grid{Height: height / side, Width: width / side}
	for line := range grid.Height {
		for column := range grid.Width {
			for i := range side * side {
				for c := range channels {
					rows = append(rows, x[(c*height+line*side+i/side)*width+column*side+i%side])
				}
			}
		}
	}
	return grid, rows
}

// TestAutoencoders: pictures and latents are those of diffusers, on the oracle and on the processor.
func TestAutoencoders(t *testing.T) {
	for _, folder := range []string{"vae_flux", "vae_sd"} {
		for _, d := range devices(t) {
			t.Run(folder+" "+d.Name(), func(t *testing.T) {
				a := autoencoder(t, d, folder)
				decoded := func(r map[string]converttest.Tensor, z, sample string) {
					s := r[z].Shape
					grid, rows := cells(r[z].Floats(), s[1], s[2], s[3], 1)
					got, err := a.Decode(context.Background(), grid, rows, nil)
					require.NoError(t, err)
					s = r[sample].Shape
					_, want := cells(r[sample].Floats(), 3, s[2], s[3], a.Side)
					converttest.Near(t, want, got, tolerance)
				}
				decoded(converttest.Tensors(t, "multimodal", folder, "decode.safetensors"), "z", "sample")
				if folder == "vae_flux" {
					decoded(converttest.Tensors(t, "multimodal", folder, "tiled.safetensors"), "z", "whole")
				}
				r := converttest.Tensors(t, "multimodal", folder, "encode.safetensors")
				s := r["x"].Shape
				grid, rows := cells(r["x"].Floats(), 3, s[2], s[3], a.Side)
				got, err := a.Encode(context.Background(), grid, rows, nil)
				require.NoError(t, err)
				converttest.Near(t, r["latents"].Floats(), a.Scaled(r["mean"].Floats()), 1e-5)
				s = r["mean"].Shape
				_, mean := cells(r["mean"].Floats(), s[1], s[2], s[3], 1)
				_, variance := cells(r["logvar"].Floats(), s[1], s[2], s[3], 1)
				var want []float32
				for i := 0; i < len(mean); i += a.Channels {
					want = append(append(want, mean[i:i+a.Channels]...), variance[i:i+a.Channels]...)
				}
				converttest.Near(t, want, got, tolerance)
			})
		}
	}
}

// TestDecodedPipeline: the latents that a pipeline ends with become its picture.
func TestDecodedPipeline(t *testing.T) {
	for _, d := range devices(t) {
		a := autoencoder(t, d, "zimage")
		r := converttest.Tensors(t, "multimodal", "zimage", "run_4steps.safetensors")
		s := r["latents_final"].Shape
		grid, rows := cells(r["latents_final"].Floats(), s[1], s[2], s[3], 1)
		got, err := a.Decode(context.Background(), grid, a.Unscaled(rows), nil)
		require.NoError(t, err)
		for i, v := range got {
			got[i] = pixels.Colour(v)
		}
		s = r["image"].Shape
		_, want := cells(r["image"].Floats(), 3, s[2], s[3], a.Side)
		converttest.Near(t, want, got, tolerance)
	}
}

func TestAutoencoderBounds(t *testing.T) {
	a := autoencoder(t, devices(t)[0], "vae_flux")
	for _, g := range []ir.Grid{{}, {Height: 1001, Width: 1000}, {Height: 1 << 40, Width: 1 << 40}} {
		_, err := a.Decode(context.Background(), g, nil, nil)
		require.ErrorContains(t, err, "want at most 64 million pixels")
	}
	_, err := a.Decode(context.Background(), ir.Grid{Height: 2, Width: 2}, make([]float32, 63), nil)
	require.ErrorContains(t, err, "an input of 63 numbers, want 64")
	a.encoder = nil
	_, err = a.Encode(context.Background(), ir.Grid{Height: 2, Width: 2}, nil, nil)
	require.ErrorContains(t, err, "has a decoder alone")
}

// TestBeginning: a picture's latents are the means that its encoder has, as a transformer takes them; a preview has
// about the colours of the picture.
func TestBeginning(t *testing.T) {
	a := autoencoder(t, devices(t)[1], "vae_flux")
	b := &picture.Bitmap{Width: 40, Height: 32}
	planes := make([]float32, 3*b.Width*b.Height)
	for i := range b.Width * b.Height * 3 {
		v := uint8(i * i % 251)
		b.Pix = append(b.Pix, v)
		planes[i%3*b.Width*b.Height+i/3] = float32(v)/255*2 - 1
	}
	grid, rows := cells(planes, 3, b.Height, b.Width, a.Side)
	moments, err := a.Encode(t.Context(), grid, rows, nil)
	require.NoError(t, err)
	at, got, err := a.Latents(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, grid, at)
	for i := range grid.Height * grid.Width {
		want := a.Scaled(moments[i*2*a.Channels:][:a.Channels])
		require.InDeltaSlice(t, want, got[i*a.Channels:][:a.Channels], 1e-5)
	}
	_, _, err = a.Latents(t.Context(), &picture.Bitmap{Width: 41, Height: 32})
	require.ErrorContains(t, err, "41 × 32 pixels, want multiples of 8")

	p, err := a.Preview(t.Context())
	require.NoError(t, err)
	noise := diffuse.Noise(7, a.Channels)
	whole, err := a.Picture(t.Context(), ir.Grid{Height: 6, Width: 6}, slices.Repeat(noise, 36))
	require.NoError(t, err)
	for c, colour := range p.Colours(noise) {
		mean := 0.0
		for i := c; i < len(whole.Pix); i += 3 {
			mean += float64(whole.Pix[i]) / float64(whole.Width*whole.Height)
		}
		require.InDelta(t, mean, colour, 40)
	}
}
