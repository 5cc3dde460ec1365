package paint

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// MostPixels bounds the pixels of an enlarged picture.
const MostPixels = 64_000_000

// stripeBytes is how much memory values of a stripe take, at most.
const stripeBytes = int64(1 << 30)

// Upscaler is a network that enlarges pictures, on a device.
type Upscaler struct {
	*pixels.Upscaler

	device  backend.Device
	program *blocks.Network
}

// Options are how a picture is enlarged.
type Options struct {
	Blend float64 // share of the network in the result, from 0 to 1; the rest is bicubic
	Bytes int64   // memory for the values of a stripe; 0: as the package has it
	Done  func(part, parts int)
}

// OpenUpscaler reads the network of a file, which may be closed afterwards. The device is the caller's.
func OpenUpscaler(d backend.Device, f *gguf.File) (*Upscaler, error) {
	u, err := pixels.NewUpscaler(tensors(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	r := Room{Device: d}
	if err := r.fits(f); err != nil {
		return nil, err
	}
	n, err := r.network(f, u.Bound, u.Tensors)
	return &Upscaler{Upscaler: u, device: d, program: n}, err
}

// Upscale enlarges a picture. What the result would have of pixels, and take of memory, is bounded before anything is
// allocated. A canceled context ends it within the computation of a stripe.
func (u *Upscaler) Upscale(ctx context.Context, b *picture.Bitmap, o Options) (*picture.Bitmap, error) {
	if err := u.Fits(b.Width, b.Height); err != nil {
		return nil, err
	}
	grid, rows, err := u.Rows(b.Height, b.Width, func(y, x, colour int) float32 {
		return float32(b.Pix[(y*b.Width+x)*3+colour]) / math.MaxUint8
	})
	if err != nil {
		return nil, err
	}
	if rows, err = u.Compute(ctx, grid, rows, o); err != nil {
		return nil, err
	}
	out := &picture.Bitmap{Width: b.Width * u.Scale, Height: b.Height * u.Scale}
	out.Pix = make([]uint8, out.Width*out.Height*3)
	smooth := b.Cubic(u.Scale)
	for y := range out.Height {
		for x := range out.Width {
			p := out.Pix[(y*out.Width+x)*3:][:3]
			for c := range p {
				v := float64(min(max(u.At(grid, rows, y, x, c), 0), 1))
				if o.Blend < 1 {
					v = o.Blend*v + (1-o.Blend)*smooth(y, x, c)
				}
				p[c] = uint8(math.RoundToEven(min(max(v, 0), 1) * math.MaxUint8))
			}
		}
	}
	return out, nil
}

// Compute has the network compute rows of a picture, as Rows lays them out.
func (u *Upscaler) Compute(ctx context.Context, grid ir.Grid, rows []float32, o Options) ([]float32, error) {
	s := blocks.Stripes{Grid: grid, Bytes: cmp.Or(o.Bytes, stripeBytes), Done: o.Done}
	out, err := u.program.Striped(ctx, u.device, s, map[string][]float32{pixels.Small: rows})
	return out[pixels.Large], err
}

// Fits is an error if the result of a picture would be too large, or its values too many for the memory that is free.
func (u *Upscaler) Fits(width, height int) error {
	w, h := int64(width)*int64(u.Scale), int64(height)*int64(u.Scale)
	if w < 1 || h < 1 || w*h > MostPixels {
		return fmt.Errorf("%d × %d pixels would become %d × %d: want at most %d million, make the picture smaller first",
			width, height, w, h, MostPixels/1_000_000)
	}
	// Whole pictures of floats: what a block takes, the block before, and the first layer, and what it makes; the result.
	const kept = 4
	grid := u.Grid(height, width)
	bytes := 4*int64(grid.Height)*int64(grid.Width)*int64(kept*u.Wide) + w*h*3*5 +
		u.program.Needs(blocks.Stripes{Grid: grid, Bytes: stripeBytes})
	if free := mem.Available(); bytes > free {
		return fmt.Errorf("%d × %d pixels take %d MB of memory to enlarge, and %d are free: make the picture smaller first",
			width, height, bytes>>20, free>>20)
	}
	return nil
}
