package paint

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/picture"
)

// side is the number of pixels of a latent, of all models that are known.
const side = 8

// mostTokens is how long a prompt may be, as Z-Image was trained.
const mostTokens = 512

// Studio makes pictures by a model, one at a time. Its parts are loaded one after another, and given up before the
// next: the largest has to fit free memory.
type Studio struct {
	Usual  paint.Usual
	Guides bool // its transformer takes a guidance itself, if any: no negative prompt counts

	parts    *parts
	pipeline pipeline
	mu       sync.Mutex // held while a picture is made
	texts    texts
	preview  *diffuse.Preview // nil: nobody asked yet
}

// NewStudio finds the parts of a model that makes pictures here: in its folder as diffusers has it, or, beside each
// other, in files as other programs have them, at the path of the folder or of the transformer.
func NewStudio(path string, named Files) (*Studio, error) {
	p, err := findParts(path, named)
	if err != nil {
		return nil, err
	}
	how := p.pipeline()
	return &Studio{Usual: how.usual, Guides: how.guides, parts: p, pipeline: how}, nil
}

// Begin is where latents begin: of noise, unless a command has others.
type Begin func(channels int) (ir.Grid, []float32, error)

// Compared is what a command does to compare a picture with another program's. Either may be nil.
type Compared struct {
	Begin Begin
	Step  func(step int, grid ir.Grid, latents []float32) // is told the latents after each step, from 0
}

// Draw makes a picture on a device.
func (s *Studio) Draw(ctx context.Context, r paint.Room, o *paint.Order, with Compared) (*picture.Bitmap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawing := paint.Drawing{Guidance: o.Guidance}
	var err error
	if drawing.Prompt, drawing.Negative, err = s.read(r, o); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // what a part held is free before the next one asks how much is
	from := s.noise(o)
	if with.Begin != nil {
		from = with.Begin
	}
	if err := s.begun(ctx, r, o, &from); err != nil {
		return nil, err
	}
	drawing.Done = s.told(o, &drawing, with.Step)
	if drawing.Latents, err = s.latents(ctx, r, o, &drawing, from); err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	a, err := s.autoencoder(r)
	if err != nil {
		return nil, err
	}
	return a.Picture(ctx, drawing.Grid, drawing.Latents)
}

// noise begins with noise alone.
func (s *Studio) noise(o *paint.Order) Begin {
	return func(channels int) (ir.Grid, []float32, error) {
		grid := ir.Grid{Height: o.Height / side, Width: o.Width / side}
		return grid, diffuse.Noise(o.Seed, grid.Height*grid.Width*channels), nil
	}
}

// begun has from begin with the latents of a picture, if there is one, and finds what previews are made by.
func (s *Studio) begun(ctx context.Context, r paint.Room, o *paint.Order, from *Begin) error {
	if o.Init == nil && (o.Tell == nil || s.preview != nil) {
		return nil
	}
	a, err := s.autoencoder(r)
	if err != nil {
		return err
	}
	if o.Tell != nil && s.preview == nil {
		if s.preview, err = a.Preview(ctx); err != nil {
			return err
		}
	}
	if o.Init == nil {
		return nil
	}
	grid, rows, err := a.Latents(ctx, o.Init)
	*from = func(int) (ir.Grid, []float32, error) { return grid, rows, nil }
	return err
}

// told tells who asks of each step.
func (s *Studio) told(o *paint.Order, drawing *paint.Drawing, step func(int, ir.Grid, []float32)) func(steps, of int,
	latents, clean []float32) {
	return func(steps, of int, latents, clean []float32) {
		if step != nil {
			step(steps-1, drawing.Grid, latents)
		}
		if o.Done != nil {
			o.Done(steps, of)
		}
		if o.Tell == nil {
			return
		}
		grid := drawing.Grid
		o.Tell(paint.Progress{Step: steps, Steps: of, Preview: func() *picture.Bitmap {
			return &picture.Bitmap{Width: grid.Width, Height: grid.Height, Pix: s.preview.Colours(clean)}
		}})
	}
}

// read makes rows of the prompts.
func (s *Studio) read(r paint.Room, o *paint.Order) (prompt, negative *paint.Text, err error) {
	e := s.pipeline.texts(s.parts)
	defer func() { err = errors.Join(err, e.close()) }()
	rows := func(text string) (*paint.Text, error) {
		return s.texts.get(o.Salt, text, func() (*paint.Text, error) { return e.read(r, text) })
	}
	if prompt, err = rows(o.Prompt); err == nil && o.Guidance > 1 && !s.pipeline.guides {
		negative, err = rows(o.Negative)
	}
	return prompt, negative, err
}

// latents draws the latents of the picture.
func (s *Studio) latents(ctx context.Context, r paint.Room, o *paint.Order, drawing *paint.Drawing, begin Begin) (
	_ []float32, err error) {
	flow, err := s.parts.flow()
	if err != nil {
		return nil, err
	}
	t, err := s.transformer(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if drawing.Grid, drawing.Latents, err = begin(t.Latents()); err != nil {
		return nil, err
	}
	const cell = pixels.Patch * pixels.Patch
	levels, err := flow.Levels(o.Steps, diffuse.Tokens(drawing.Grid.Height*drawing.Grid.Width/cell))
	if err != nil {
		return nil, err
	}
	drawing.Levels = levels[o.First():]
	if o.Init != nil {
		drawing.Latents = diffuse.Noised(drawing.Latents, diffuse.Noise(o.Seed, len(drawing.Latents)), drawing.Levels[0])
	}
	return paint.Draw(ctx, t, *drawing)
}

// transformer opens the transformer.
func (s *Studio) transformer(r paint.Room) (paint.Transformer, error) {
	f, config, err := s.parts.open(s.parts.kind)
	if err != nil {
		return nil, err
	}
	t, err := s.pipeline.open(r, f, config)
	return t, errors.Join(err, f.Close())
}

// autoencoder opens the autoencoder.
func (s *Studio) autoencoder(r paint.Room) (*paint.Autoencoder, error) {
	f, config, err := s.parts.open(pixels.AutoencoderKind)
	if err != nil {
		return nil, err
	}
	said, err := settings(config, "vae", pixels.Published, pixels.ReadSettings)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	a, err := paint.OpenAutoencoder(r, f, said)
	return a, errors.Join(err, f.Close())
}
