package weights

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/storage/gguf"
)

type Synth struct {
	Shape  string `placeholder:"NAME" help:"Known model to take the shape of, such as llama-3.1-8b, or a part of one that makes pictures, such as flux-schnell."`
	Config string `placeholder:"FILE" help:"A model's config.json, for shapes that are not known."`
	Quant  string `default:"Q4_K_M" placeholder:"TYPE" help:"File type. Default: Q4_K_M."`
	Layers int    `placeholder:"N" help:"Layers, if not as many as the model has."`
	Vocab  int    `placeholder:"N" help:"Tokens of the vocabulary, if not as many as the model has."`
	Tiny   bool   `help:"Make it as small as its family can be: a few layers of every kind, 8192 tokens."`
	Hollow bool   `help:"Write the header alone, and a hole for the weights: enough for plan, and for nothing else."`
	Seed   uint64 `default:"1" placeholder:"N" help:"The same seed gives the same file. Default: 1."`
	Output string `short:"o" placeholder:"FILE" help:"File to write (GGUF)."`
	env.ForceFlag
	List bool `help:"List the known shapes with their sizes at the file type, and write nothing."`
}

func (Synth) Examples() [2]string {
	return [2]string{
		`sluice synth --list --quant Q8_0`,
		`sluice synth --shape flux-schnell --quant Q8_0 -o flux1-schnell-Q8_0.gguf`,
	}
}

func (c *Synth) Run(e *env.Env) error {
	recipe, ok := ftype.Find(c.Quant)
	if !ok {
		return env.Usagef("--quant: %q is not a file type, want one of %s", c.Quant, strings.Join(ftype.Names(), ", "))
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.List {
		return c.list(e.Stdout, recipe)
	}
	model, err := c.model(e, recipe)
	if err != nil {
		return err
	}
	out, err := e.Create(c.Output, c.Force, c.Config)
	if err != nil {
		return err
	}
	if err := env.Finish(out, c.Output, c.write(e, model, out)); err != nil || out.Stream {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: %s parameters in %s\n", env.Printable(c.Output), env.Parameters(model.Parameters),
		env.BinarySize(model.Bytes))
	return err
}

func (c *Synth) check() error {
	if err := cmp.Or(env.Within("--layers", c.Layers, 0, synth.MostLayers),
		env.Within("--vocab", c.Vocab, 0, synth.MostVocab)); err != nil {
		return err
	}
	if c.List {
		if cmp.Or(c.Output, c.Shape, c.Config) != "" {
			return env.Usagef("--list shows all shapes and writes nothing: leave out --shape, --config and -o")
		}
		return nil
	}
	if c.Output == "" || (c.Shape == "") == (c.Config == "") {
		return env.Usagef("want -o FILE, and one of --shape NAME and --config FILE")
	}
	return env.NotOver(c.Output, c.Config)
}

// model is what the flags name, with its vocabulary.
func (c *Synth) model(e *env.Env, recipe *ftype.Type) (*synthetic, error) {
	if p, ok := synth.FindPicture(c.Shape, c.Tiny); ok {
		if c.Layers != 0 || c.Vocab != 0 || c.Hollow {
			return nil, env.Usagef("--layers, --vocab and --hollow: %s makes pictures, and takes --tiny alone", c.Shape)
		}
		return c.picture(p, recipe)
	}
	name, config, err := c.config(e)
	if err != nil {
		return nil, err
	}
	model, err := c.plan(name, config, recipe)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(c.Config, c.Shape), err)
	}
	return model, model.vocabulary(config.Vocab)
}

// picture is a network that pictures are made with.
func (c *Synth) picture(p *synth.Picture, recipe *ftype.Type) (*synthetic, error) {
	shaped, err := models.ShapedPicture(p, recipe)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	if p.Vocabulary != nil {
		p.Vocabulary(shaped.Meta)
	}
	return &synthetic{shaped, synth.Filler{Seed: c.Seed}}, nil
}

// config is the shape that the flags name, and a name for the model.
func (c *Synth) config(e *env.Env) (name string, config *synth.Config, err error) {
	name = c.Shape
	if c.Config == "" {
		config, err = synth.Find(c.Shape)
	} else {
		var text []byte
		if text, err = e.ReadFile(c.Config, env.MostDescription); err != nil {
			return "", nil, err
		}
		folder, _ := filepath.Abs(filepath.Dir(c.Config)) // on failure the name stays empty
		name = filepath.Base(folder)
		if config, err = synth.Parse(text); err != nil {
			return "", nil, fmt.Errorf("%s: %w", c.Config, err)
		}
	}
	if err != nil {
		return "", nil, err
	}
	c.resize(config)
	return name, config, nil
}

// resize applies the flags that change a shape.
func (c *Synth) resize(config *synth.Config) {
	const fewest = 8192 // tokens: what the embedded vocabulary has
	if c.Tiny {
		config.Tiny()
		config.Vocab = min(config.Vocab, config.LeastVocab(fewest))
	}
	config.Layers, config.Vocab = cmp.Or(c.Layers, config.Layers), cmp.Or(c.Vocab, config.Vocab)
}

// synthetic is a model that is about to be written.
type synthetic struct {
	*models.Shaped
	filler synth.Filler
}

// plan lists the tensors of the program that the shape's metadata gives, each with its type by the recipe.
func (c *Synth) plan(name string, config *synth.Config, recipe *ftype.Type) (*synthetic, error) {
	shaped, err := models.ShapedOf(name, config, recipe)
	if err != nil {
		return nil, err
	}
	return &synthetic{shaped, synth.Filler{Seed: c.Seed}}, nil
}

// write writes the model, or its outside.
func (c *Synth) write(e *env.Env, model *synthetic, out *safefile.File) error {
	switch {
	case !c.Hollow:
		return model.fill(e, out, c.Output)
	case out.Stream:
		return env.Usagef("--hollow: %s is a pipe or a device, and only a file has a hole", c.Output)
	}
	model.Meta.Set("general.type", namedmodel.Outline)
	layout, err := gguf.Plan(model.Meta, model.Tensors)
	if err != nil {
		return err
	}
	_, err = out.Write(layout.Head)
	return env.Unfit(c.Output, cmp.Or(err, out.Truncate(layout.Size)))
}

// fill writes the model until it is complete or Ctrl-C. It erases the bar before it returns.
func (s *synthetic) fill(e *env.Env, file io.Writer, path string) error {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	out := e.Writing(ctx, "writing "+env.Printable(path), s.Bytes)
	defer out.Clear()
	w := bufio.NewWriter(file)
	err := gguf.Write(w, s.Meta, s.Tensors, func(t *gguf.Tensor, w io.Writer) error {
		out.Writer = w
		return s.filler.Write(out, s.Values[t.Name], t.Type)
	})
	return env.Unfit(path, cmp.Or(err, w.Flush()))
}

// list prints the known shapes, each with its sizes.
func (c *Synth) list(w io.Writer, recipe *ftype.Type) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "shape\tarchitecture\tlayers\twidth\tparameters\t%s\n", recipe.Name)
	for _, s := range synth.Shapes() {
		config, err := synth.Find(s.Name)
		if err != nil {
			return err
		}
		c.resize(config)
		config.Vocab = config.LeastVocab(config.Vocab)
		model, err := c.plan(s.Name, config, recipe)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		architecture, _ := model.Meta.String("general.architecture")
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\n", s.Name, architecture, config.Layers, config.Width,
			env.Parameters(model.Parameters), env.BinarySize(model.Bytes))
	}
	pictures := synth.Pictures(c.Tiny)
	for i := range pictures {
		p := &pictures[i]
		model, err := c.picture(p, recipe)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%s\t-\t-\t%s\t%s\n", p.Name, p.Arch, env.Parameters(model.Parameters), env.BinarySize(model.Bytes))
	}
	return t.Flush()
}

// vocabulary is the embedded model's, extended or cut to the size of the shape's.
func (s *synthetic) vocabulary(size int) error {
	small, err := gguf.Parse(mini.Name, mini.GGUF)
	if err != nil {
		return err
	}
	return errors.Join(synth.Vocabulary(s.Meta, &small.Meta, size), small.Close())
}
