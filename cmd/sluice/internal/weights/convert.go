package weights

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/storage/checkpoint"
)

type Convert struct {
	In     string `arg:"" help:"Folder of a model: config.json, tokenizer.json, and safetensors or PyTorch files. Or of an adapter: adapter_config.json and its safetensors file."`
	Output string `short:"o" required:"" placeholder:"FILE" help:"File to write (GGUF)."`
	Type   string `placeholder:"TYPE" help:"File type, such as BF16, F16, F32 or Q8_0. Default: what the folder has."`
	Name   string `placeholder:"NAME" help:"What the model is called. Default: as its folder."`
	Pre    string `placeholder:"NAME" help:"How its tokenizer cuts text, by llama.cpp's names. Default: found in tokenizer.json."`
	MMProj bool   `name:"mmproj" help:"Write how the model sees, its tower, which is a file of its own (mmproj)."`
	Base   string `placeholder:"MODEL" help:"The model that an adapter is for, named as -m is."`
	env.ForceFlag
}

func (Convert) Examples() [2]string {
	return [2]string{
		`sluice convert Qwen3-0.6B -o qwen3-0.6b-bf16.gguf`,
		`sluice convert --type Q8_0 Qwen3-0.6B -o qwen3-0.6b-q8_0.gguf`,
	}
}

func (c *Convert) Run(e *env.Env) error {
	if isAdapter(c.In) {
		return c.adapter(e)
	}
	if c.Base != "" {
		return env.Usagef("--base is of adapters, and %s is none", c.In)
	}
	var recipe *ftype.Type
	if c.Type != "" {
		var ok bool
		if recipe, ok = ftype.Find(c.Type); !ok {
			return env.Usagef("--type: %q is no file type, want one of %s", c.Type, strings.Join(ftype.Names(), ", "))
		}
	}
	folder, err := checkpoint.Open(c.In)
	if err != nil {
		return err
	}
	defer folder.Close()
	plan := namedmodel.PlanFolder
	if c.MMProj {
		plan = namedmodel.PlanTower
	}
	m, err := plan(folder, recipe, convert.Options{Name: c.Name, Pre: c.Pre})
	if err != nil {
		return fmt.Errorf("%s: %w", c.In, err)
	}
	var read []string
	for _, f := range folder.Files {
		read = append(read, f.Path)
	}
	out, err := e.Create(c.Output, c.Force, read...)
	if err != nil {
		return err
	}
	if err := env.Finish(out, c.Output, writeFile(e, m, out, c.Output)); err != nil || out.Stream {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: %s, %s parameters in %s\n", env.Printable(c.Output), m.FileType.Name,
		env.Parameters(m.Parameters()), env.BinarySize(m.Bytes()))
	return err
}

// writeFile writes what a folder becomes until it is complete or Ctrl-C. It erases the bar before it returns.
func writeFile(e *env.Env, m *namedmodel.Conversion, file io.Writer, path string) error {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	out := e.Writing(ctx, "writing "+env.Printable(path), m.Bytes())
	defer out.Clear()
	return env.Unfit(path, m.Write(file, func(w io.Writer) io.Writer {
		out.Writer = w
		return out
	}))
}
