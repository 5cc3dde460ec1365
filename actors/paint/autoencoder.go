package paint

import (
	"context"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Autoencoder makes pictures of latents, and latents of pictures, on a device.
type Autoencoder struct {
	*pixels.Autoencoder

	device           backend.Device
	decoder, encoder *blocks.Network // encoder nil: the file has none
}

// OpenAutoencoder reads the autoencoder of a file, which may be closed afterwards. The room is the caller's, and
// has to have place for all of it.
func OpenAutoencoder(r Room, f *gguf.File, s pixels.Settings) (*Autoencoder, error) {
	a, err := pixels.NewAutoencoder(tensors(f), s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if err := r.fits(f); err != nil {
		return nil, err
	}
	x := &Autoencoder{Autoencoder: a, device: r.Device}
	if x.decoder, err = r.network(f, a.Decoder, a.Tensors); err == nil && a.Encoder != nil {
		x.encoder, err = r.network(f, a.Encoder, a.Tensors)
	}
	return x, err
}

// Decode makes a picture of latents, a row each, as the decoder takes them: [Grid.Height·Grid.Width][Channels]. A row
// of the result is a cell of Side × Side pixels, line by line, of three colours from −1 to 1, which may be beyond.
func (a *Autoencoder) Decode(ctx context.Context, grid ir.Grid, latents []float32, done func(part, parts int)) (
	[]float32, error) {
	return a.compute(ctx, a.decoder, grid, map[string][]float32{pixels.Latents: latents}, pixels.Pixels, done)
}

// Encode makes latents of a picture: the mean of each channel, then the logarithm of its variance. Rows are those of
// Decode.
func (a *Autoencoder) Encode(ctx context.Context, grid ir.Grid, cells []float32, done func(part, parts int)) (
	[]float32, error) {
	if a.encoder == nil {
		return nil, fmt.Errorf("this autoencoder has a decoder alone: pictures do not become latents")
	}
	return a.compute(ctx, a.encoder, grid, map[string][]float32{pixels.Pixels: cells}, pixels.Moments, done)
}

func (a *Autoencoder) compute(ctx context.Context, n *blocks.Network, grid ir.Grid, in map[string][]float32, out string,
	done func(part, parts int)) ([]float32, error) {
	s := blocks.Stripes{Grid: grid, Bytes: stripeBytes, Done: done}
	if most := MostPixels / (a.Side * a.Side); grid.Height < 1 || grid.Width < 1 || grid.Height > most/grid.Width {
		return nil, fmt.Errorf("%d × %d latents of %d pixels at a side: want at most %d million pixels", grid.Width,
			grid.Height, a.Side, MostPixels/1_000_000)
	}
	if bytes, free := n.Needs(s), mem.Available(); bytes > free {
		return nil, fmt.Errorf("%d × %d pixels take up to %d MB of memory in the autoencoder, and %d are free: want a smaller "+
			"picture", grid.Width*a.Side, grid.Height*a.Side, bytes>>20, free>>20)
	}
	made, err := n.Striped(ctx, a.device, s, in)
	return made[out], err
}

// Picture is what latents of a transformer show.
func (a *Autoencoder) Picture(ctx context.Context, grid ir.Grid, latents []float32) (*picture.Bitmap, error) {
	cells, err := a.Decode(ctx, grid, a.Unscaled(latents), nil)
	if err != nil {
		return nil, err
	}
	b := &picture.Bitmap{Width: grid.Width * a.Side, Height: grid.Height * a.Side}
	b.Pix = make([]uint8, b.Width*b.Height*3)
	for i := range b.Pix {
		x, y := i/3%b.Width, i/3/b.Width
		row := y/a.Side*grid.Width + x/a.Side
		v := cells[((row*a.Side+y%a.Side)*a.Side+x%a.Side)*3+i%3]
		b.Pix[i] = uint8(math.RoundToEven(float64(pixels.Colour(v)) * math.MaxUint8))
	}
	return b, nil
}

// Preview fits what the decoder does to latents by one sum a colour, from patches of latents that are alike.
func (a *Autoencoder) Preview(ctx context.Context) (*diffuse.Preview, error) {
	const cells, size = 8, 4 // cells of some equal latents at a side
	grid := ir.Grid{Height: cells * size, Width: cells * size}
	noise := diffuse.Noise(1, cells*cells*a.Channels)
	rows := make([]float32, 0, grid.Height*grid.Width*a.Channels)
	for i := range grid.Height * grid.Width {
		at := i/grid.Width/size*cells + i%grid.Width/size
		rows = append(rows, noise[at*a.Channels:][:a.Channels]...)
	}
	pixel, err := a.Decode(ctx, grid, a.Unscaled(rows), nil)
	if err != nil {
		return nil, err
	}
	colours := make([]float32, grid.Height*grid.Width*3)
	each := a.Side * a.Side
	for i, v := range pixel {
		colours[i/(3*each)*3+i%3] += pixels.Colour(v) / float32(each)
	}
	return diffuse.FitPreview(rows, colours, a.Channels, 3)
}

// Latents are those of a picture, whose sides are whole cells, as a transformer has them.
func (a *Autoencoder) Latents(ctx context.Context, b *picture.Bitmap) (ir.Grid, []float32, error) {
	grid := ir.Grid{Height: b.Height / a.Side, Width: b.Width / a.Side}
	if grid.Height*a.Side != b.Height || grid.Width*a.Side != b.Width {
		return grid, nil, fmt.Errorf("%d × %d pixels, want multiples of %d", b.Width, b.Height, a.Side)
	}
	cells := make([]float32, len(b.Pix))
	for i, v := range b.Pix {
		x, y := i/3%b.Width, i/3/b.Width
		row := y/a.Side*grid.Width + x/a.Side
		cells[((row*a.Side+y%a.Side)*a.Side+x%a.Side)*3+i%3] = float32(v)/math.MaxUint8*2 - 1
	}
	moments, err := a.Encode(ctx, grid, cells, nil)
	if err != nil {
		return grid, nil, err
	}
	n := len(moments) / (grid.Height * grid.Width)
	var rows []float32
	for i := range grid.Height * grid.Width {
		rows = append(rows, moments[i*n:][:a.Channels]...)
	}
	return grid, a.Scaled(rows), nil
}
