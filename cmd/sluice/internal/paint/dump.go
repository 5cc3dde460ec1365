package paint

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/storage/safetensors"
)

// dump is what a picture went through, by the names that diffusers' references have.
type dump struct{ all []safetensors.Floats }

// step adds the latents after a step, and has them as the final ones.
func (d *dump) step(step int, grid ir.Grid, latents []float32) {
	n := grid.Height * grid.Width
	channels := len(latents) / n
	t := safetensors.Floats{Name: fmt.Sprintf("step_%d.latents", step), Shape: []int{1, channels, grid.Height, grid.Width}}
	for c := range channels {
		for i := range n {
			t.Values = append(t.Values, latents[i*channels+c])
		}
	}
	if step > 0 {
		d.all = d.all[:len(d.all)-1]
	}
	last := t
	last.Name = "latents_final"
	d.all = append(d.all, t, last)
}

// image adds the picture, colours from 0 to 1.
func (d *dump) image(b *picture.Bitmap) {
	t := safetensors.Floats{Name: "image", Shape: []int{1, 3, b.Height, b.Width}}
	for c := range 3 {
		for i := range b.Width * b.Height {
			t.Values = append(t.Values, float32(b.Pix[3*i+c])/math.MaxUint8)
		}
	}
	d.all = append(d.all, t)
}
