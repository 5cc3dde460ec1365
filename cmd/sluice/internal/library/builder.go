package library

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/hub"
	"github.com/sluice-ai/sluice/storage/requant"
	"github.com/sluice-ai/sluice/storage/store"
)

// Builder makes models of the store from others, as a Modelfile says.
type Builder struct {
	Store *store.Store
	Tell  func(status string)
}

// Material is what a model is made of: files in the store or uploaded ones, and the settings that came with them.
type Material struct {
	layers []store.Layer
	manner *modelfile.Manner
	source string
}

// Unmakable is an error of what a client or Modelfile wants a model made of.
type Unmakable struct{ Err error }

func (u Unmakable) Error() string { return u.Err.Error() }
func (u Unmakable) Unwrap() error { return u.Err }

func unfitf(format string, args ...any) error { return Unmakable{fmt.Errorf(format, args...)} }

// FromName takes the files and settings of a model of the store.
func (b *Builder) FromName(n store.Name) (*Material, error) {
	m, err := b.Store.Find(n)
	if err != nil {
		return nil, err
	}
	manner, err := namedmodel.MannerOf(b.Store, &m.Manifest)
	if err != nil {
		return nil, err
	}
	from := &Material{manner: manner, source: m.Source}
	for _, f := range m.Files {
		if slices.Contains([]store.Role{store.Weights, store.Config, store.Projector, store.Adapter}, f.Role) {
			b.Tell("using existing layer " + string(f.Digest))
			from.layers = append(from.layers, store.Layer{File: f})
		}
	}
	return from, nil
}

// FromDigests takes uploaded files by their digests: a GGUF file, all parts of one, its mmproj file beside
// them, or the files of a folder.
func (b *Builder) FromDigests(files map[string]string) (*Material, error) {
	names := slices.Sorted(maps.Keys(files))
	from := &Material{manner: &modelfile.Manner{}, source: "files"}
	ggufs := 0
	for _, name := range names {
		if err := store.CheckFileName(name); err != nil {
			return nil, Unmakable{Err: err}
		}
		d, err := store.ParseDigest(files[name])
		if err != nil {
			return nil, unfitf("%s: %w", name, err)
		}
		role := store.Config
		switch ext := strings.ToLower(filepath.Ext(name)); {
		case ext == ".gguf":
			ggufs++
			if role = store.Weights; hub.IsProjector(name) {
				role = store.Projector
			}
		case slices.Contains([]string{".safetensors", ".bin", ".pt", ".pth"}, ext):
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

// Make stores a model under a name. Settings that manner lacks are the material's.
func (b *Builder) Make(ctx context.Context, name store.Name, from *Material, manner *modelfile.Manner,
	quantize string) (*store.Manifest, error) {
	manner, err := readable(manner)
	if err != nil {
		return nil, err
	}
	if err := b.inspect(ctx, from, quantize); err != nil {
		return nil, err
	}
	layers := append(from.layers, layersOf(manner.Over(from.manner))...)
	b.Tell("writing manifest")
	return b.Store.Make(ctx, name, from.source, layers)
}

// readable returns a manner with a template that the engine can read: Go templates of Ollama are converted to Jinja.
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

// layersOf returns the files in which a manner is stored.
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

// inspect opens the files of a model, and quantises them if quantize names a type.
func (b *Builder) inspect(ctx context.Context, from *Material, quantize string) error {
	scratch, err := b.Store.Scratch(ctx)
	if err != nil {
		return err
	}
	defer scratch.Close()
	path, err := b.lay(scratch.Dir, from)
	if err != nil {
		return err
	}
	b.Tell("parsing weights")
	file, err := namedmodel.OpenPath(path)
	if err != nil {
		return unfitf("what it is made from: %s", without(scratch.Dir, err))
	}
	defer file.Close()
	if len(file.Tensors) == 0 {
		return unfitf("what it is made from has no weights")
	}
	if err := b.inspectAdapters(from, file); err != nil {
		return err
	}
	if quantize == "" {
		return nil
	}
	return b.quantize(ctx, from, file, filepath.Join(scratch.Dir, ".quantized.gguf"), quantize)
}

// lay links the files of a model under their names in a folder, and returns the path that it is opened by.
func (b *Builder) lay(dir string, from *Material) (path string, err error) {
	path = dir
	for i := range from.layers {
		l := &from.layers[i]
		if l.Role == store.Adapter {
			continue
		}
		at, err := b.Store.Blob(l.Digest)
		if err != nil {
			return "", unfitf("%s: %w", l.Name, err)
		}
		if err := os.Symlink(at, filepath.Join(dir, l.Name)); err != nil {
			return "", err
		}
		if path == dir && l.Role == store.Weights && !isFolder(from.layers) {
			path = filepath.Join(dir, l.Name)
		}
	}
	return path, nil
}

// without is an error's text without the paths of a folder.
func without(dir string, err error) string {
	return strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
}

// isFolder says whether files are opened as a folder of safetensors.
func isFolder(layers []store.Layer) bool {
	return slices.ContainsFunc(layers, func(l store.Layer) bool { return l.Role == store.Config })
}

// quantize replaces the material's files by quantised ones.
func (b *Builder) quantize(ctx context.Context, from *Material, file *gguf.File, out, kind string) error {
	recipe, ok := ftype.Find(kind)
	if !ok {
		return unfitf("%q is no file type: want one of %s", kind, strings.Join(ftype.Names(), ", "))
	}
	q := &models.Quantization{File: file, Recipe: recipe}
	if err := q.Plan(ftype.Options{}, false); err != nil {
		return Unmakable{Err: err}
	}
	if err := q.Missing(); err != nil {
		return Unmakable{Err: err}
	}
	b.Tell("quantizing model to " + recipe.Name)
	job := requant.Job{Source: file, Meta: q.Keys, Tensors: q.Layout.Tensors, Threads: runtime.GOMAXPROCS(0)}
	if _, err := job.Run(ctx, out); err != nil {
		return err
	}
	f, err := os.Open(out)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := b.Store.Upload(ctx, "", q.Layout.Size, contextReader{ctx, f})
	if err != nil {
		return err
	}
	made := store.File{Role: store.Weights, Name: "model-" + recipe.Name + ".gguf", Digest: d}
	others := slices.DeleteFunc(from.layers, func(l store.Layer) bool {
		return l.Role != store.Projector && l.Role != store.Adapter
	})
	from.layers = append([]store.Layer{{File: made}}, others...)
	return nil
}
