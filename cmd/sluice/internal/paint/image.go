package paint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/checkpoint"
)

type Image struct {
	Prompt   []string `arg:"" help:"What the picture shows."`
	Model    string   `short:"m" required:"" placeholder:"FOLDER" help:"Folder of Z-Image as diffusers has it: transformer, text_encoder, tokenizer, vae, scheduler."`
	Output   string   `short:"o" required:"" placeholder:"FILE" help:"Picture to write (PNG)."`
	Size     string   `default:"1024x1024" placeholder:"WxH" help:"Pixels, multiples of 16. Default: 1024x1024."`
	Steps    int      `default:"8" placeholder:"N" help:"Evaluations of the model. Default: 8."`
	Seed     *uint64  `placeholder:"N" help:"Of the noise: the same seed gives the same picture. Default: another one each time, which is printed."`
	Guidance float64  `placeholder:"X" help:"How much the picture is pushed away from --negative, above 1. Default: not at all."`
	Negative string   `placeholder:"TEXT" help:"What the picture does not show; counts with --guidance."`
	Latents  string   `placeholder:"FILE" help:"Begin with the tensor latents_0 of a file of safetensors instead of noise: to compare with other programs."`
	env.ForceFlag

	width, height int
	seed          uint64
}

func (Image) Examples() [2]string {
	return [2]string{
		`sluice image -m Z-Image-Turbo "a cat on a warm wall" -o cat.png --size 512x512`,
		`sluice image -m Z-Image-Turbo --seed 7 --steps 4 "a lighthouse at dusk" -o out.png`,
	}
}

// The most pixels at a side of a picture, and tokens of a prompt, as Z-Image was trained.
const (
	mostSide   = 4096
	mostTokens = 512
)

func (c *Image) Run(e *env.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := known(c.Model); err != nil {
		return err
	}
	out, err := e.Create(c.Output, c.Force, c.Latents)
	if err != nil {
		return err
	}
	b, err := c.draw(e)
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
		env.Count(c.Steps, "step"), from)
	return err
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
	if c.seed = rand.Uint64() >> 11; c.Seed != nil { // short enough for other programs' numbers
		c.seed = *c.Seed
	}
	return env.Within("--steps", c.Steps, 1, diffuse.MostSteps)
}

// parameters say how the picture was made, as other programs write it into theirs.
func (c *Image) parameters(b *picture.Bitmap) picture.Text {
	text := strings.Join(c.Prompt, " ")
	if c.Guidance > 1 {
		text += fmt.Sprintf("\nNegative prompt: %s", c.Negative)
	}
	text += fmt.Sprintf("\nSteps: %d, CFG scale: %v, Size: %dx%d", c.Steps, c.Guidance, b.Width, b.Height)
	if c.Latents == "" {
		text += fmt.Sprintf(", Seed: %d", c.seed)
	}
	return picture.Text{Key: "parameters", Value: text + ", Version: sluice " + env.Version()}
}

// known is an error if a folder is none of a model that makes pictures here.
func known(folder string) error {
	var index struct {
		Class string `json:"_class_name"`
	}
	text, err := readSmall(filepath.Join(folder, "model_index.json"))
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil {
		return fmt.Errorf("want the folder of Z-Image, as diffusers has it: %w", err)
	}
	if index.Class != "ZImagePipeline" {
		return fmt.Errorf("%s: is of %.40q, want ZImagePipeline: no other model makes pictures here yet", folder, index.Class)
	}
	return nil
}

// readSmall reads a description.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	defer f.Close()
	text, err := safefile.ReadAll(f, env.MostDescription)
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	return text, nil
}

// draw makes the picture: its parts are loaded one after another, and given up before the next.
func (c *Image) draw(e *env.Env) (b *picture.Bitmap, err error) {
	d, err := cpu.New(0, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	o := paint.Drawing{Guidance: c.Guidance}
	if o.Prompt, o.Negative, err = c.texts(d); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // what a part held is free before the next one asks how much is
	bar := e.Progress("drawing")
	bar.Count = true
	defer bar.Clear()
	o.Done = func(steps, of int) { bar.Show(int64(steps), int64(of)) }
	if o.Grid, o.Latents, err = c.latents(ctx, d, &o); err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	return c.picture(ctx, d, o.Grid, o.Latents)
}

// texts makes rows of the prompts.
func (c *Image) texts(d backend.Device) (prompt, negative []float32, err error) {
	f, err := models.OpenEncoder(c.Model)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	vocab, err := token.New(&f.Meta)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	rows := func(text string) ([]float32, error) {
		text = "<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n"
		ids, err := vocab.Encode(nil, text, token.Options{ParseSpecial: true})
		if err != nil {
			return nil, fmt.Errorf("the prompt: %w", err)
		}
		if len(ids) > mostTokens {
			return nil, fmt.Errorf("the prompt has %d tokens, want at most %d", len(ids), mostTokens)
		}
		return paint.Encode(d, f, ids)
	}
	if prompt, err = rows(strings.Join(c.Prompt, " ")); err == nil && c.Guidance > 1 {
		negative, err = rows(c.Negative)
	}
	return prompt, negative, err
}

// latents draws the latents of the picture.
func (c *Image) latents(ctx context.Context, d backend.Device, o *paint.Drawing) (_ ir.Grid, _ []float32, err error) {
	none := ir.Grid{}
	text, err := readSmall(filepath.Join(c.Model, "transformer", "config.json"))
	if err != nil {
		return none, nil, err
	}
	s, err := pixels.ReadZImageSettings(text)
	if err != nil {
		return none, nil, fmt.Errorf("transformer/config.json: %w", err)
	}
	if text, err = readSmall(filepath.Join(c.Model, "scheduler", "scheduler_config.json")); err != nil {
		return none, nil, err
	}
	flow, err := diffuse.ReadFlow(text)
	if err != nil {
		return none, nil, fmt.Errorf("scheduler/scheduler_config.json: %w", err)
	}
	f, err := checkpoint.OpenUnchanged(filepath.Join(c.Model, "transformer"))
	if err != nil {
		return none, nil, err
	}
	z, err := paint.OpenZImage(d, f, s)
	if err = errors.Join(err, f.Close()); err != nil {
		return none, nil, err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	if o.Grid, o.Latents, err = c.begin(z.Channels); err != nil {
		return none, nil, err
	}
	const cell = pixels.Patch * pixels.Patch
	if o.Levels, err = flow.Levels(c.Steps, diffuse.Tokens(o.Grid.Height*o.Grid.Width/cell)); err != nil {
		return none, nil, err
	}
	made, err := z.Draw(ctx, *o)
	return o.Grid, made, err
}

// begin is the latents of noise, of a seed or of a file.
func (c *Image) begin(channels int) (ir.Grid, []float32, error) {
	const side = 8 // pixels of a latent, of all models that are known
	if c.Latents == "" {
		grid := ir.Grid{Height: c.height / side, Width: c.width / side}
		return grid, diffuse.Noise(c.seed, grid.Height*grid.Width*channels), nil
	}
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

// picture decodes latents.
func (c *Image) picture(ctx context.Context, d backend.Device, grid ir.Grid, latents []float32) (
	*picture.Bitmap, error) {
	text, err := readSmall(filepath.Join(c.Model, "vae", "config.json"))
	if err != nil {
		return nil, err
	}
	s, err := pixels.ReadSettings(text)
	if err != nil {
		return nil, fmt.Errorf("vae/config.json: %w", err)
	}
	f, err := checkpoint.OpenUnchanged(filepath.Join(c.Model, "vae"))
	if err != nil {
		return nil, err
	}
	a, err := paint.OpenAutoencoder(d, f, s)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return a.Picture(ctx, grid, latents)
}
