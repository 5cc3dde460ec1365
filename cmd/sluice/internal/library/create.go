package library

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/store"
)

type Create struct {
	Name     string `arg:"" placeholder:"NAME" help:"Name in the store, such as mine or mine:v2. A model that has it already makes room."`
	File     string `short:"f" name:"file" default:"Modelfile" placeholder:"FILE" help:"Modelfile; - is standard input. Default: Modelfile."`
	Quantize string `short:"q" placeholder:"TYPE" help:"Write the weights in fewer bits, such as Q4_K_M (sluice quantize has more to say about it)."`
}

func (Create) Examples() [2]string {
	return [2]string{`sluice create mine -f Modelfile`, `printf 'FROM llama3.2\nSYSTEM Be brief.\n' | sluice create brief -f -`}
}

// Help is what the flags do not say.
func (Create) Help() string {
	return "A Modelfile says FROM which model (a name in the store, a GGUF file, or a folder of safetensors), and how it runs: " +
		"SYSTEM, TEMPLATE, PARAMETER, MESSAGE. ADAPTER names what changes it (LoRA: a GGUF file, or a folder of PEFT). Files are copied into the store, unless they are there."
}

// mostModelfile is how many bytes a Modelfile may have.
const mostModelfile = 4 << 20

func (c *Create) Run(e *env.Env) error {
	name, err := parseModelName(c.Name)
	if err != nil {
		return err
	}
	text, err := e.ReadFile(c.File, mostModelfile)
	if err != nil {
		return err
	}
	m, err := modelfile.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return err
	}
	w := Builder{Store: s, Tell: func(string) {}}
	base, err := w.locate(ctx, c.File, m.From)
	if err != nil {
		return err
	}
	if err := w.adaptFrom(ctx, base, c.File, m.Adapters); err != nil {
		return err
	}
	made, err := w.Make(ctx, name, base, &m.Manner, c.Quantize)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s is in the store: %s\n", name, env.BinarySize(made.Size()))
	return err
}

// locate finds the model of FROM: a path as given, or relative to the Modelfile, else a name.
func (b *Builder) locate(ctx context.Context, modelfile, from string) (*Material, error) {
	for _, path := range []string{from, filepath.Join(filepath.Dir(modelfile), from)} {
		if _, err := os.Stat(path); err == nil {
			return b.fromPath(ctx, path)
		}
	}
	name, err := store.ParseName(from)
	if err != nil || namedmodel.LooksLikePath(from) {
		return nil, fmt.Errorf("FROM %s: there is no such file: want one, or the name of a model in the store", from)
	}
	return b.FromName(name)
}

// fromPath copies the files of a model at a path into the store.
func (b *Builder) fromPath(ctx context.Context, path string) (*Material, error) {
	if !checkpoint.Has(path) {
		return b.fromFiles(ctx, []string{path})
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	var files []string
	for _, entry := range entries {
		ext := filepath.Ext(entry.Name())
		known := []string{".safetensors", ".bin", ".pt", ".pth", ".json", ".jinja", ".txt", ".model"}
		if !entry.IsDir() && slices.Contains(known, ext) && store.CheckFileName(entry.Name()) == nil {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return b.fromFiles(ctx, files)
}

func (b *Builder) fromFiles(ctx context.Context, files []string) (*Material, error) {
	digests := map[string]string{}
	for _, path := range files {
		d, err := b.upload(ctx, path)
		if err != nil {
			return nil, err
		}
		digests[filepath.Base(path)] = string(d)
	}
	return b.FromDigests(digests)
}

// contextReader is a reader that fails once its context ends.
type contextReader struct {
	ctx context.Context
	f   *os.File
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}
