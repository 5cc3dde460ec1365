package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/modelfile"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/requant"
	"github.com/sluice-ai/sluice/storage/store"
)

// workshop makes models of others.
type workshop struct {
	e     *env
	store *store.Store
	tell  func(status string)
}

// material is what a model is made of: files that are in the store, or were uploaded, and how they run already.
type material struct {
	layers []store.Layer
	manner *modelfile.Manner
	source string
}

// unmakable says what is wrong with what a model was to be made of.
type unmakable struct{ error }

func (u unmakable) Unwrap() error { return u.error }

func unfitf(format string, args ...any) error { return unmakable{fmt.Errorf(format, args...)} }

// fromName takes a model of the store.
func (w *workshop) fromName(n store.Name) (*material, error) {
	m, err := w.store.Find(n)
	if err != nil {
		return nil, err
	}
	manner, err := mannerOf(w.store, &m.Manifest)
	if err != nil {
		return nil, err
	}
	from := &material{manner: manner, source: m.Source}
	for _, f := range m.Files {
		if f.Role == store.Weights || f.Role == store.Config {
			w.tell("using existing layer " + string(f.Digest))
			from.layers = append(from.layers, store.Layer{File: f})
		}
	}
	return from, nil
}

// fromDigests takes files by what they hold: a GGUF file, all parts of one, or the files of a folder.
func (w *workshop) fromDigests(files map[string]string) (*material, error) {
	names := slices.Sorted(maps.Keys(files))
	from := &material{manner: &modelfile.Manner{}, source: "files"}
	ggufs := 0
	for _, name := range names {
		if err := store.CheckFileName(name); err != nil {
			return nil, unmakable{err}
		}
		d, err := store.ParseDigest(files[name])
		if err != nil {
			return nil, unfitf("%s: %w", name, err)
		}
		role := store.Config
		switch strings.ToLower(filepath.Ext(name)) {
		case ".gguf":
			ggufs++
			role = store.Weights
		case ".safetensors", ".bin", ".pt", ".pth":
			role = store.Weights
		}
		from.layers = append(from.layers, store.Layer{File: store.File{Role: role, Name: name, Digest: d}})
	}
	if ggufs > 0 && ggufs < len(names) || ggufs == 0 && !slices.Contains(names, "config.json") {
		return nil, unfitf("%s: want a GGUF file, all parts of one, or safetensors with config.json and what else is "+
			"in their folder", strings.Join(names, ", "))
	}
	return from, nil
}

// make gives a name a model. What manner does not say, the material's does.
func (w *workshop) make(ctx context.Context, name store.Name, from *material, manner *modelfile.Manner,
	quantize string) (*store.Manifest, error) {
	manner, err := readable(manner)
	if err != nil {
		return nil, err
	}
	if err := w.inspect(ctx, from, quantize); err != nil {
		return nil, err
	}
	layers := append(from.layers, layersOf(manner.Over(from.manner))...)
	w.tell("writing manifest")
	return w.store.Make(ctx, name, from.source, layers)
}

// readable is a manner whose template the engine can read: Ollama's are written as Jinja.
func readable(m *modelfile.Manner) (*modelfile.Manner, error) {
	if m.Template == "" {
		return m, nil
	}
	jinja, err := chat.FromOllama(m.Template)
	if err == nil {
		_, err = chat.Compile(jinja)
	}
	if err != nil {
		return nil, unfitf("template: %w", err)
	}
	said := *m
	said.Template = jinja
	return &said, nil
}

// fitting is a manner for a model's file. A template of Ollama's, which its registry has beside the file, counts where
// the file has none of its makers.
func fitting(m *modelfile.Manner, file *meta.Map) *modelfile.Manner {
	said := *m
	jinja, err := chat.FromOllama(m.Template)
	own, _ := chat.Own(file)
	if said.Template = jinja; err != nil || jinja != m.Template && own != "" {
		said.Template = ""
	}
	return &said
}

// layersOf are the files that keep a manner.
func layersOf(m *modelfile.Manner) (all []store.Layer) {
	add := func(role store.Role, name, text string) {
		if text != "" {
			all = append(all, store.Layer{File: store.File{Role: role, Name: name}, Data: []byte(text)})
		}
	}
	add(store.Template, "template", m.Template)
	add(store.System, "system", m.System)
	if len(m.Parameters) > 0 {
		add(store.Params, "params", string(m.Parameters.JSON()))
	}
	if len(m.Messages) > 0 {
		add(store.Messages, "messages", string(m.MessagesJSON()))
	}
	for i, text := range m.Licenses {
		add(store.License, fmt.Sprintf("license-%d", i+1), text)
	}
	return all
}

// mannerOf reads how a model of the store runs.
func mannerOf(s *store.Store, m *store.Manifest) (*modelfile.Manner, error) {
	manner := &modelfile.Manner{}
	texts := map[store.Role][]string{}
	for _, role := range []store.Role{store.Template, store.System, store.Params, store.Messages, store.License} {
		var err error
		if texts[role], err = s.Texts(m, role); err != nil {
			return nil, err
		}
	}
	first := func(role store.Role) string {
		if len(texts[role]) == 0 {
			return ""
		}
		return texts[role][0]
	}
	manner.Template, manner.System, manner.Licenses = first(store.Template), first(store.System), texts[store.License]
	manner.Parameters = modelfile.KnownParameters(first(store.Params))
	var err error
	if text := first(store.Messages); text != "" {
		manner.Messages, err = modelfile.ParseMessages(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return manner, nil
}

// inspect opens the files of a model, and writes them again if their weights are to have fewer bits.
func (w *workshop) inspect(ctx context.Context, from *material, quantize string) error {
	scratch, err := w.store.Scratch(ctx)
	if err != nil {
		return err
	}
	defer scratch.Close()
	dir := scratch.Dir
	path := dir
	for i := range from.layers {
		l := &from.layers[i]
		at, err := w.store.Blob(l.Digest)
		if err != nil {
			return unfitf("%s: %w", l.Name, err)
		}
		if err := os.Symlink(at, filepath.Join(dir, l.Name)); err != nil {
			return err
		}
		if i == 0 && l.Role == store.Weights && !isFolder(from.layers) {
			path = filepath.Join(dir, l.Name)
		}
	}
	w.tell("parsing weights")
	file, err := openPath(path)
	if err != nil {
		return unfitf("what it is made from: %s", strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
	}
	defer file.Close()
	if len(file.Tensors) == 0 {
		return unfitf("what it is made from has no weights")
	}
	if quantize == "" {
		return nil
	}
	return w.quantize(ctx, from, file, filepath.Join(dir, ".quantized.gguf"), quantize)
}

// isFolder says whether files are opened as a folder of safetensors.
func isFolder(layers []store.Layer) bool {
	return slices.ContainsFunc(layers, func(l store.Layer) bool { return l.Role == store.Config })
}

// openPath opens a GGUF file, or a folder.
func openPath(path string) (*gguf.File, error) {
	if checkpoint.Has(path) {
		return openCheckpoint(path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder without config.json: want a GGUF file, or the folder of a model", path)
	}
	return gguf.Open(path)
}

// quantize replaces the material's files with one of fewer bits.
func (w *workshop) quantize(ctx context.Context, from *material, file *gguf.File, out, kind string) error {
	c := quantizeCmd{Type: kind}
	recipe, options, err := c.recipe()
	if err != nil {
		return unmakable{err}
	}
	q := &quantization{file: file, recipe: recipe}
	if err := errors.Join(q.plan(options, false)); err != nil {
		return unmakable{err}
	}
	if err := q.missing(); err != nil {
		return unmakable{err}
	}
	w.tell("quantizing model to " + recipe.Name)
	job := requant.Job{Source: file, Meta: q.keys, Tensors: q.layout.Tensors, Threads: runtime.GOMAXPROCS(0)}
	if _, err := job.Run(ctx, out); err != nil {
		return err
	}
	f, err := os.Open(out)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := w.store.Upload(ctx, "", q.layout.Size, contextReader{ctx, f})
	if err != nil {
		return err
	}
	from.layers = []store.Layer{{File: store.File{Role: store.Weights, Name: "model-" + recipe.Name + ".gguf", Digest: d}}}
	return nil
}
