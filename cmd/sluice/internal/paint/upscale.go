package paint

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/storage/checkpoint"
)

type Upscale struct {
	In     string  `arg:"" help:"Picture: PNG, JPEG, WebP or GIF."`
	Model  string  `short:"m" required:"" placeholder:"FILE" help:"Upscaler of Real-ESRGAN's kind (RRDBNet): a file of safetensors, PyTorch (.pth) or GGUF, or its folder."`
	Output string  `short:"o" required:"" placeholder:"FILE" help:"Picture to write (PNG)."`
	Blend  float64 `default:"1" placeholder:"SHARE" help:"Share of the upscaler in the result, from 0 to 1; the rest is bicubic. Default: 1."`
	env.ForceFlag
}

func (Upscale) Examples() [2]string {
	return [2]string{
		`sluice upscale -m RealESRGAN_x4plus.safetensors small.png -o large.png`,
		`sluice upscale -m RealESRGAN_x4plus.pth --blend 0.8 face.jpg -o large.png`,
	}
}

func (c *Upscale) Run(e *env.Env) error {
	if !(c.Blend >= 0 && c.Blend <= 1) {
		return env.Usagef("--blend is %v, want 0 to 1", c.Blend)
	}
	data, err := compute.ReadPicture(c.In)
	if err != nil {
		return err
	}
	out, err := e.Create(c.Output, c.Force, c.In, c.Model)
	if err != nil {
		return err
	}
	from, to, err := c.enlarge(e, data, out)
	if err := env.Finish(out, c.Output, err); err != nil || out.Stream {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: %d × %d pixels from %d × %d\n", env.Printable(c.Output), to.Width, to.Height,
		from.Width, from.Height)
	return err
}

// enlarge writes the larger picture.
func (c *Upscale) enlarge(e *env.Env, data []byte, out *safefile.File) (from, to *picture.Bitmap, err error) {
	d, err := cpu.New(0, "")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	f, err := checkpoint.OpenUnchanged(c.Model)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	u, err := paint.OpenUpscaler(paint.Turning(ctx, d, nil), f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}
	info, err := picture.Inspect(data)
	if err == nil {
		err = u.Fits(info.Width, info.Height)
	}
	if err != nil {
		return nil, nil, env.OnFile(c.In, err)
	}
	if from, err = picture.Decode(data); err != nil {
		return nil, nil, env.OnFile(c.In, err)
	}
	bar := e.Progress("enlarging")
	bar.Count = true
	defer bar.Clear()
	to, err = u.Upscale(ctx, from, paint.Options{Blend: c.Blend, Done: func(part, parts int) {
		bar.Show(int64(part), int64(parts))
	}})
	if err != nil {
		return nil, nil, err
	}
	w := bufio.NewWriter(out)
	return from, to, errors.Join(to.WritePNG(w), w.Flush())
}
