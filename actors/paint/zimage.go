package paint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// The most tokens of a picture, 4 million pixels, and of a text.
const (
	mostPatches = 1 << 14
	mostWords   = 1 << 12
)

// ZImage is the transformer of Z-Image on a device.
type ZImage struct {
	*pixels.ZImage

	device                    backend.Device
	timed, image, text, joint *blocks.Network
}

// Refined is a text as the transformer's layers take it. It serves all evaluations of a picture.
type Refined struct{ tokens []float32 }

// OpenZImage reads the transformer of a file, which may be closed afterwards. The room is the caller's.
func OpenZImage(r Room, f *gguf.File, s pixels.ZImageSettings) (*ZImage, error) {
	m, err := pixels.NewZImage(tensors(f), s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	all, err := r.networks(f, m.Tensors, m.Timed, m.Image, m.Text, m.Joint)
	if err != nil {
		return nil, err
	}
	return &ZImage{m, r.Device, all[0], all[1], all[2], all[3]}, nil
}

// Refine makes of a text's rows, as its encoder leaves them, what layers take: [words][TextWidth].
func (z *ZImage) Refine(rows []float32) (*Refined, error) {
	n := len(rows) / z.TextWidth
	if n < 1 || n > mostWords || n*z.TextWidth != len(rows) {
		return nil, fmt.Errorf("a text of %d numbers, want 1 to %d rows of %d", len(rows), mostWords, z.TextWidth)
	}
	in, places := z.pads(n), make([]ir.Place, roundUp(n))
	for i := range places {
		places[i] = ir.Place{int32(1 + i)}
	}
	in[pixels.Texts] = repeated(rows, z.TextWidth, len(places))
	out, err := z.text.Run(z.device, together(len(places)), places, in)
	return &Refined{out[pixels.Tokens]}, err
}

// Evaluate says how latents move at a time, from 0, noise, to 1: the velocity noise − image, as the levels of
// stages/diffuse have it. Rows are latents, line by line: [Grid.Height·Grid.Width][Channels].
func (z *ZImage) Evaluate(grid ir.Grid, latents []float32, text *Refined, time float64) ([]float32, error) {
	const side = pixels.Patch
	if err := patched(grid, latents, z.Channels); err != nil {
		return nil, err
	}
	c, err := z.timed.Run(z.device, together(1), nil, map[string][]float32{pixels.Time: z.WavesOf(time)})
	if err != nil {
		return nil, err
	}
	condition, words := c[pixels.Condition], len(text.tokens)/z.Width
	patches := z.order(grid, latents, nil)
	places := z.places(ir.Grid{Height: grid.Height / side, Width: grid.Width / side}, words)
	n := len(patches) / (side * side * z.Channels)
	in := z.pads(n)
	in[pixels.Patches] = repeated(patches, side*side*z.Channels, roundUp(n))
	in[pixels.Condition] = slices.Repeat(condition, roundUp(n))
	out, err := z.image.Run(z.device, together(roundUp(n)), places[:roundUp(n)], in)
	if err != nil {
		return nil, err
	}
	out, err = z.joint.Run(z.device, together(len(places)), places, map[string][]float32{
		pixels.Tokens:    append(out[pixels.Tokens], text.tokens...),
		pixels.Condition: slices.Repeat(condition, len(places))})
	if err != nil {
		return nil, err
	}
	velocity := make([]float32, len(latents))
	z.order(grid, velocity, out[pixels.Velocity])
	for i := range velocity {
		velocity[i] = -velocity[i] // the transformer says image − noise
	}
	return velocity, nil
}

// patched is an error if latents are not whole patches, or more than a transformer takes.
func patched(grid ir.Grid, latents []float32, channels int) error {
	const side = pixels.Patch
	if grid.Height < side || grid.Width < side || grid.Height%side != 0 || grid.Width%side != 0 ||
		grid.Height/side > mostPatches/(grid.Width/side) {
		return fmt.Errorf("%d × %d latents, want even numbers, and at most %d patches of 2 × 2", grid.Width, grid.Height,
			mostPatches)
	}
	if want := grid.Height * grid.Width * channels; len(latents) != want {
		return fmt.Errorf("%d numbers of latents, want %d", len(latents), want)
	}
	return nil
}

// order lays latents out patch by patch; or, given patches, writes these to the latents.
func (z *ZImage) order(grid ir.Grid, latents, patches []float32) []float32 {
	const side = pixels.Patch
	made := make([]float32, 0, len(latents))
	for y := 0; y < grid.Height; y += side {
		for x := 0; x < grid.Width; x += side {
			for line := range side {
				row := latents[((y+line)*grid.Width+x)*z.Channels:][:side*z.Channels]
				if patches != nil {
					patches = patches[copy(row, patches):]
				}
				made = append(made, row...)
			}
		}
	}
	return made
}

// places are those of a picture's patches, of what pads them, and of a text of so many tokens.
func (z *ZImage) places(patches ir.Grid, words int) []ir.Place {
	n := patches.Height * patches.Width
	all := make([]ir.Place, roundUp(n)+words)
	for i := range n {
		all[i] = ir.Place{int32(words + 1), int32(i / patches.Width), int32(i % patches.Width)}
	}
	for i := range words {
		all[roundUp(n)+i] = ir.Place{int32(1 + i)}
	}
	return all
}

// pads are the inputs that tell n rows from those that pad them.
func (z *ZImage) pads(n int) map[string][]float32 {
	kept, padding := make([]float32, roundUp(n)), make([]float32, roundUp(n)*z.Width)
	for i := range kept {
		if i < n {
			kept[i] = 1
		} else {
			for j := range z.Width {
				padding[i*z.Width+j] = 1
			}
		}
	}
	return map[string][]float32{pixels.Kept: kept, pixels.Padding: padding}
}

// roundUp is the tokens that n become: whole groups.
func roundUp(n int) int {
	const group = 32
	return (n + group - 1) / group * group
}

// repeated is rows of some width, and the last one until there are n.
func repeated(rows []float32, width, n int) []float32 {
	last := rows[len(rows)-width:]
	all := slices.Clone(rows)
	for len(all) < n*width {
		all = append(all, last...)
	}
	return all
}

// together says that n rows see each other in all segments.
func together(n int) func(int) []ir.Grid {
	return func(int) []ir.Grid { return []ir.Grid{{Height: 1, Width: n}} }
}

// Close frees what the device has of the transformer.
func (z *ZImage) Close() error {
	return errors.Join(z.timed.Close(), z.image.Close(), z.text.Close(), z.joint.Close())
}
