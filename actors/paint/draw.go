package paint

import (
	"context"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/diffuse"
)

// Drawing is what a picture is drawn from.
type Drawing struct {
	Prompt, Negative []float32 // rows of texts, as Encode makes them; Negative counts with a Guidance above 1
	Grid             ir.Grid   // of latents
	Latents          []float32 // to begin with, at the first level: rows, line by line
	Levels           []float64 // of noise, from stages/diffuse
	Guidance         float64
	Done             func(steps, of int) // is told after each step; nil: nobody asks
}

// Draw takes latents from level to level, and returns the last ones. A canceled context ends it after an evaluation.
func (z *ZImage) Draw(ctx context.Context, o Drawing) ([]float32, error) {
	prompt, err := z.Refine(o.Prompt)
	if err != nil {
		return nil, err
	}
	var other *Refined
	if o.Guidance > 1 {
		if other, err = z.Refine(o.Negative); err != nil {
			return nil, err
		}
	}
	x := append([]float32(nil), o.Latents...)
	for i, level := range o.Levels[:len(o.Levels)-1] {
		v, err := z.Evaluate(o.Grid, x, prompt, 1-level)
		if err == nil && other != nil {
			var away []float32
			if err = ctx.Err(); err == nil {
				away, err = z.Evaluate(o.Grid, x, other, 1-level)
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
		diffuse.Step(x, v, level, o.Levels[i+1])
		if o.Done != nil {
			o.Done(i+1, len(o.Levels)-1)
		}
	}
	return x, nil
}
