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

// Flux is the transformer of FLUX.1 on a device.
type Flux struct {
	*pixels.Flux

	device                               backend.Device
	timed, image, text, attention, joint *blocks.Network
}

// OpenFlux reads the transformer of a file, which may be closed afterwards. The room is the caller's.
func OpenFlux(r Room, f *gguf.File, s pixels.FluxSettings) (*Flux, error) {
	m, err := pixels.NewFlux(tensors(f), s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	all, err := r.networks(f, m.Tensors, m.Timed, m.Image, m.Text, m.Attention, m.Joint)
	if err != nil {
		return nil, err
	}
	return &Flux{m, r.Device, all[0], all[1], all[2], all[3], all[4]}, nil
}

// Evaluate says how latents move at a level of noise, from 1 to 0: the velocity noise − image. Rows are latents, line
// by line, as those of ZImage. guidance counts if the transformer takes one.
func (x *Flux) Evaluate(grid ir.Grid, latents []float32, text *Text, level, guidance float64) ([]float32, error) {
	if err := patched(grid, latents, x.Channels); err != nil {
		return nil, err
	}
	words := len(text.Rows) / x.TextWidth
	if words < 1 || words > mostWords || words*x.TextWidth != len(text.Rows) || len(text.Pooled) != x.PooledWidth {
		return nil, fmt.Errorf("a text of %d numbers with a vector of %d, want 1 to %d rows of %d, and %d", len(text.Rows),
			len(text.Pooled), mostWords, x.TextWidth, x.PooledWidth)
	}
	if err := x.condition(text, level, guidance); err != nil {
		return nil, err
	}
	places := x.places(ir.Grid{Height: grid.Height / pixels.Patch, Width: grid.Width / pixels.Patch}, words)
	tokens, err := x.streams(x.order(grid, latents, nil), text.Rows, places, words)
	if err != nil {
		return nil, err
	}
	out, err := x.joint.Run(x.device, together(len(places)), places, map[string][]float32{pixels.Tokens: tokens})
	if err != nil {
		return nil, err
	}
	velocity := make([]float32, len(latents))
	each := pixels.Patch * pixels.Patch * x.Channels
	x.order(grid, velocity, out[pixels.Velocity][words*each:])
	return velocity, nil
}

// condition has norms and gates do what a level of noise, a text and a guidance want.
func (x *Flux) condition(text *Text, level, guidance float64) error {
	in := map[string][]float32{pixels.Time: x.WavesOf(level), pixels.Pooled: text.Pooled}
	if x.Guided {
		in[pixels.Guidance] = x.WavesOf(guidance)
	}
	out, err := x.timed.Run(x.device, together(1), nil, in)
	if err != nil {
		return err
	}
	for i, list := range x.Made {
		all := out[fmt.Sprint(pixels.Modulated, i)]
		for j, m := range list {
			values := slices.Clone(all[j*x.Width:][:x.Width])
			for k := range values {
				values[k] += m.More
			}
			if err := x.set(m.Name, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// set changes a weight of the part that has it.
func (x *Flux) set(name string, values []float32) (err error) {
	for _, n := range []*blocks.Network{x.image, x.text, x.joint} {
		if err = n.Set(name, values); err == nil {
			return nil
		}
	}
	return err
}

// streams takes patches and a text through the first blocks. They are apart, but for what they see of each other.
func (x *Flux) streams(patches, rows []float32, places []ir.Place, words int) (tokens []float32, err error) {
	image, err := x.image.Begin(x.device, len(places)-words, places[words:])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, image.End()) }()
	text, err := x.text.Begin(x.device, words, places[:words])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, text.End()) }()
	theirs, ours := map[string][]float32{pixels.Texts: rows}, map[string][]float32{pixels.Patches: patches}
	for l := range len(x.Image.Segments) {
		t, err := text.Next(theirs)
		if err != nil {
			return nil, err
		}
		i, err := image.Next(ours)
		if err != nil {
			return nil, err
		}
		if l == len(x.Image.Segments)-1 {
			return append(t[pixels.Tokens], i[pixels.Tokens]...), nil
		}
		in := map[string][]float32{}
		for _, name := range []string{pixels.Query, pixels.Key, pixels.Value} {
			of := fmt.Sprint(name, l)
			in[name] = append(t[of], i[of]...)
		}
		out, err := x.attention.Run(x.device, together(len(places)), nil, in)
		if err != nil {
			return nil, err
		}
		seen, of := out[pixels.Seen], fmt.Sprint(pixels.Seen, l)
		theirs, ours = map[string][]float32{of: seen[:words*x.Width]}, map[string][]float32{of: seen[words*x.Width:]}
	}
	return nil, fmt.Errorf("a transformer without blocks")
}

// order lays latents out patch by patch, channel by channel; or, given patches, writes these to the latents.
func (x *Flux) order(grid ir.Grid, latents, patches []float32) []float32 {
	const side = pixels.Patch
	made := make([]float32, 0, len(latents))
	for y := 0; y < grid.Height; y += side {
		for at := 0; at < grid.Width; at += side {
			for c := range x.Channels {
				for i := range side * side {
					here := &latents[((y+i/side)*grid.Width+at+i%side)*x.Channels+c]
					if patches != nil {
						*here = patches[len(made)]
					}
					made = append(made, *here)
				}
			}
		}
	}
	return made
}

// places are those of a text of so many tokens, which are all alike, and of a picture's patches.
func (x *Flux) places(patches ir.Grid, words int) []ir.Place {
	all := make([]ir.Place, words, words+patches.Height*patches.Width)
	for i := range patches.Height * patches.Width {
		all = append(all, ir.Place{0, int32(i / patches.Width), int32(i % patches.Width)})
	}
	return all
}

// Close frees what the device has of the transformer.
func (x *Flux) Close() error {
	return errors.Join(x.timed.Close(), x.image.Close(), x.text.Close(), x.attention.Close(), x.joint.Close())
}
