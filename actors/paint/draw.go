package paint

import (
	"context"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/diffuse"
)

// Transformer says how latents become those of a picture.
type Transformer interface {
	// Latents is the number of channels of a latent.
	Latents() int
	// Guides says that it takes a guidance itself, or none; else a second text pushes the picture away.
	Guides() bool
	// Read makes of a text what serves all evaluations of a picture.
	Read(t *Text, guidance float64) (Velocity, error)
	Close() error
}

// Velocity says how latents move at a level of noise: noise − image. Rows are latents, line by line.
type Velocity func(grid ir.Grid, latents []float32, level float64) ([]float32, error)

// Drawing is what a picture is drawn from.
type Drawing struct {
	Prompt, Negative *Text     // Negative counts with a Guidance above 1
	Grid             ir.Grid   // of latents
	Latents          []float32 // to begin with, at the first level: rows, line by line
	Levels           []float64 // of noise, from stages/diffuse
	Guidance         float64
	// Done is told after each step how many there were of how many, where the latents are now, and where they would be
	// without noise if they went on straight; nil: nobody asks.
	Done func(steps, of int, latents, clean []float32)
}

// Draw takes latents from level to level, and returns the last ones. A canceled context ends it after an evaluation, or
// sooner: see Turning.
func Draw(ctx context.Context, t Transformer, o Drawing) ([]float32, error) {
	prompt, err := t.Read(o.Prompt, o.Guidance)
	if err != nil {
		return nil, err
	}
	var other Velocity
	if o.Guidance > 1 && !t.Guides() {
		if other, err = t.Read(o.Negative, 0); err != nil {
			return nil, err
		}
	}
	x := slices.Clone(o.Latents)
	for i, level := range o.Levels[:len(o.Levels)-1] {
		v, err := prompt(o.Grid, x, level)
		if err == nil && other != nil {
			var away []float32
			if err = ctx.Err(); err == nil {
				away, err = other(o.Grid, x, level)
			}
			if err == nil {
				v = diffuse.Guided(v, away, o.Guidance, true)
			}
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		var clean []float32
		if o.Done != nil {
			clean = slices.Clone(x)
			diffuse.Step(clean, v, level, 0)
		}
		diffuse.Step(x, v, level, o.Levels[i+1])
		if o.Done != nil {
			o.Done(i+1, len(o.Levels)-1, x, clean)
		}
	}
	return x, nil
}

// Latents implements Transformer.
func (z *ZImage) Latents() int { return z.Channels }

// Guides implements Transformer.
func (*ZImage) Guides() bool { return false }

// Read implements Transformer.
func (z *ZImage) Read(t *Text, _ float64) (Velocity, error) {
	if err := t.fits(z.TextWidth); err != nil {
		return nil, err
	}
	text, err := z.Refine(t.Rows)
	return func(grid ir.Grid, latents []float32, level float64) ([]float32, error) {
		return z.Evaluate(grid, latents, text, 1-level)
	}, err
}

// Latents implements Transformer.
func (x *Flux) Latents() int { return x.Channels }

// Guides implements Transformer.
func (*Flux) Guides() bool { return true }

// Read implements Transformer.
func (x *Flux) Read(t *Text, guidance float64) (Velocity, error) {
	return func(grid ir.Grid, latents []float32, level float64) ([]float32, error) {
		return x.Evaluate(grid, latents, t, level, guidance)
	}, t.fits(x.TextWidth)
}
