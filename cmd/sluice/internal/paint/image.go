package paint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/safetensors"
)

// Image draws a picture.
// Wide: they are the flags of a command.
type Image struct {
	Prompt   []string `arg:"" help:"What the picture shows."`
	Model    string   `short:"m" required:"" placeholder:"PATH" help:"Folder of Z-Image or FLUX.1 as diffusers has it, such as a clone of huggingface.co/Tongyi-MAI/Z-Image-Turbo; or the file of a transformer (.safetensors or .gguf), or a folder of such files, with the other parts beside it."`
	Output   string   `short:"o" required:"" placeholder:"FILE" help:"Picture to write (PNG)."`
	Size     string   `default:"1024x1024" placeholder:"WxH" help:"Pixels, multiples of 16. Default: 1024x1024."`
	Steps    *int     `placeholder:"N" help:"Evaluations of the model. Default: 8, of FLUX.1 4 (schnell) and 28 (dev)."`
	Seed     *uint64  `placeholder:"N" help:"Of the noise: the same seed gives the same picture. Default: another one each time, which is printed."`
	Guidance float64  `placeholder:"X" help:"How much the picture is pushed away from --negative, above 1. Default: not at all; FLUX.1 dev follows the prompt by 3.5."`
	Negative string   `placeholder:"TEXT" help:"What the picture does not show; counts with --guidance. FLUX.1 takes none."`
	Init     string   `placeholder:"FILE" help:"Picture to begin with instead of noise: PNG, JPEG, WebP or GIF, made as large as --size says."`
	Strength float64  `default:"0.6" placeholder:"SHARE" help:"How much of --init is lost in noise first, above 0, up to 1. Default: 0.6."`
	Latents  string   `placeholder:"FILE" help:"Begin with the tensor latents_0 of a file of safetensors instead of noise: to compare with other programs."`
	Dump     string   `placeholder:"FILE" help:"Write the latents after each step, and the picture, to a file of safetensors: to compare with other programs."`
	RAM      env.Size `name:"ram" placeholder:"SIZE" help:"Memory for the weights of a part, such as 6G; what does not fit is streamed from the file in each evaluation. Default: all of them, if they fit this machine."`
	Files
	env.ForceFlag

	width, height int
	steps         int
	seed          uint64
}

func (Image) Examples() [2]string {
	return [2]string{
		`sluice image -m Z-Image-Turbo "a cat on a warm wall" -o cat.png --size 512x512`,
		`sluice image -m flux1-schnell-Q8_0.gguf --vae ae.safetensors "a lighthouse at dusk" -o out.png`,
	}
}

// mostSide is the most pixels at a side of a picture.
const mostSide = 4096

func (c *Image) Run(e *env.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	studio, err := NewStudio(c.Model, c.Files)
	if err == nil {
		err = c.fill(studio)
	}
	if err != nil {
		return err
	}
	out, err := e.Create(c.Output, c.Force, c.inputs()...)
	if err != nil {
		return err
	}
	b, err := c.draw(e, studio)
	if err == nil {
		w := bufio.NewWriter(out)
		err = errors.Join(b.WritePNG(w, c.parameters(b)), w.Flush())
	}
	if err := env.Finish(out, c.Output, err); err != nil || out.Stream {
		return err
	}
	from := fmt.Sprintf("seed %d", c.seed)
	if c.Latents != "" {
		from = "from " + env.Printable(c.Latents)
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: %d × %d pixels in %s, %s\n", env.Printable(c.Output), b.Width, b.Height,
		env.Count(c.steps, "step"), from)
	return err
}

// inputs are the files that a picture is made of.
func (c *Image) inputs() []string {
	return []string{c.Latents, c.Init, c.Model, c.VAE, c.ClipL, c.T5, c.LLM}
}

// check reads the flags.
func (c *Image) check() error {
	var rest string
	if n, _ := fmt.Sscanf(c.Size+" ", "%dx%d%s", &c.width, &c.height, &rest); n != 2 {
		return env.Usagef("--size is %q, want two numbers, such as 1024x1024", c.Size)
	}
	for _, n := range []int{c.width, c.height} {
		if n < 16 || n > mostSide || n%16 != 0 {
			return env.Usagef("--size is %q, want multiples of 16 from 16 to %d", c.Size, mostSide)
		}
	}
	if !(c.Guidance >= 0 && c.Guidance <= 100) {
		return env.Usagef("--guidance is %v, want 0 to 100", c.Guidance)
	}
	if !(c.Strength > 0 && c.Strength <= 1) {
		return env.Usagef("--strength is %v, want above 0, up to 1", c.Strength)
	}
	if c.Init != "" && c.Latents != "" {
		return env.Usagef("--init and --latents both say what to begin with: want one of them")
	}
	if c.seed = rand.Uint64() >> 11; c.Seed != nil { // short enough for other programs' numbers
		c.seed = *c.Seed
	}
	if c.Steps != nil {
		return env.Within("--steps", *c.Steps, 1, diffuse.MostSteps)
	}
	return nil
}

// fill takes what the flags leave open from what the model is used to.
func (c *Image) fill(s *Studio) error {
	if c.steps = s.Usual.Steps; c.Steps != nil {
		c.steps = *c.Steps
	}
	if c.Guidance == 0 {
		c.Guidance = s.Usual.Guidance
	}
	if s.Guides && c.Negative != "" {
		return env.Usagef("--negative: this model takes one prompt alone, and no picture is pushed away from another")
	}
	return nil
}

// parameters say how the picture was made, as other programs write it into theirs.
func (c *Image) parameters(b *picture.Bitmap) picture.Text {
	text := strings.Join(c.Prompt, " ")
	if c.Guidance > 1 && c.Negative != "" {
		text += fmt.Sprintf("\nNegative prompt: %s", c.Negative)
	}
	text += fmt.Sprintf("\nSteps: %d, CFG scale: %v, Size: %dx%d", c.steps, c.Guidance, b.Width, b.Height)
	if c.Latents == "" {
		text += fmt.Sprintf(", Seed: %d", c.seed)
	}
	if c.Init != "" {
		text += fmt.Sprintf(", Denoising strength: %v", c.Strength)
	}
	return picture.Text{Key: "parameters", Value: text + ", Version: sluice " + env.Version()}
}

// draw makes the picture.
func (c *Image) draw(e *env.Env, s *Studio) (b *picture.Bitmap, err error) {
	o := &paint.Order{Prompt: strings.Join(c.Prompt, " "), Negative: c.Negative, Width: c.width, Height: c.height,
		Steps: c.steps, Seed: c.seed, Guidance: c.Guidance, Strength: c.Strength}
	if c.Init != "" {
		if o.Init, err = c.first(); err != nil {
			return nil, err
		}
	}
	d, err := cpu.New(0, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	weights, err := supply.Open(zerolog.Nop(), nil) // what fails is said once it is needed
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, weights.Close()) }()
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	bar := e.Progress("drawing")
	bar.Count = true
	defer bar.Clear()
	o.Done = func(steps, of int) { bar.Show(int64(steps), int64(of)) }
	var with Compared
	if c.Latents != "" {
		with.Begin = c.begin
	}
	var dump dump
	if c.Dump != "" {
		with.Step = dump.step
	}
	room := paint.Room{Device: paint.Turning(ctx, d, nil), Bytes: int64(c.RAM), Supply: weights}
	if b, err = s.Draw(ctx, room, o, with); err != nil || c.Dump == "" {
		return b, err
	}
	dump.image(b)
	out, err := e.Create(c.Dump, c.Force, append(c.inputs(), c.Output)...)
	if err != nil {
		return nil, err
	}
	return b, env.Finish(out, c.Dump, safetensors.Write(out, dump.all))
}

// first is the picture to begin with, of the size that is wanted.
func (c *Image) first() (*picture.Bitmap, error) {
	data, err := compute.ReadPicture(c.Init)
	if err != nil {
		return nil, err
	}
	b, err := picture.Decode(data)
	if err != nil {
		return nil, env.OnFile(c.Init, err)
	}
	return b.Resized(c.width, c.height), nil
}

// begin is the latents of a file.
func (c *Image) begin(channels int) (ir.Grid, []float32, error) {
	f, err := checkpoint.OpenUnchanged(c.Latents)
	if err != nil {
		return ir.Grid{}, nil, err
	}
	defer f.Close()
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.Name != "latents_0" {
			continue
		}
		if s := t.Shape; t.Type != quant.F32 || len(s) != 4 || s[2] != channels || s[3] != 1 {
			return ir.Grid{}, nil, fmt.Errorf("%s: latents_0 is %v of %s, want F32 of %d channels of one picture", c.Latents, s,
				t.Type, channels)
		}
		grid, planes := ir.Grid{Height: t.Shape[1], Width: t.Shape[0]}, make([]float32, t.Size/4)
		err := f.View(t, func(data []byte) error { return quant.Dequantize(t.Type, planes, data) })
		rows := make([]float32, 0, len(planes))
		for i := range grid.Height * grid.Width {
			for ch := range channels {
				rows = append(rows, planes[ch*grid.Height*grid.Width+i])
			}
		}
		return grid, rows, err
	}
	return ir.Grid{}, nil, fmt.Errorf("%s: holds no tensor latents_0", c.Latents)
}
