// Package checkpoint opens the folder of a model as training frameworks save it: tensors in safetensors files or in
// PyTorch's own format, in one file or in shards that an index lists, and small texts beside them.
//
// Files are mapped and never written. A name in a file of the folder never leads out of the folder. The meaning of
// tensors and texts is left to stages/model/convert.
package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/mapped"
	"github.com/sluice-ai/sluice/storage/safetensors"
	"github.com/sluice-ai/sluice/storage/torch"
)

// Tensor is a tensor of a folder.
type Tensor struct {
	element.Stored
	File int // index into Files
}

// File is a mapped file that holds tensors.
type File struct {
	*mapped.File
	Path string
}

// Folder is an open folder. It may be read by many goroutines; Close must wait for them.
type Folder struct {
	Path    string
	Files   []File
	Tensors []Tensor // file by file, in the order of their data

	byName map[string]int
	texts  map[string][]byte // of a package, which has them within
}

const (
	mostText   = 256 << 20 // bytes of a text: the largest tokenizer.json has 35 MB
	mostShards = 10_000
)

// Has reports whether dir looks like a folder, or a package, that Open accepts.
func Has(dir string) bool { return Config(dir) != "" || isPackage(dir) }

// Config returns the path of the file that says what the model of a folder is: config.json, or the params.json of
// Meta's and Mistral's own folders; "" if there is none.
func Config(dir string) string {
	for _, name := range []string{"config.json", "params.json"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// Open maps the weights of a folder. It fails if there are none, or if a file's list of tensors does not match the
// file.
func Open(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dir, err)
	case isPackage(dir):
		return openPackage(dir)
	case !info.IsDir():
		return nil, fmt.Errorf("%s: is a file, want the folder of a model, with config.json and weights", dir)
	}
	names, err := weightFiles(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: dir, byName: map[string]int{}}
	for _, name := range names {
		shard := ""
		if parts, _ := filepath.Match(divided, name); parts && len(names) > 1 {
			shard = name + "/"
		}
		if err := f.add(filepath.Join(dir, name), shard); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// weightFiles lists the names of the files that hold a folder's tensors: those that an index lists, else the only file
// of weights. Several files without an index are an error.
func weightFiles(dir string) ([]string, error) {
	for _, whole := range []string{"model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin",
		"consolidated.safetensors"} {
		index, err := readIndex(filepath.Join(dir, whole+".index.json"))
		if err == nil {
			return index, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(dir, whole)); err == nil {
			return []string{whole}, nil
		}
	}
	for _, pattern := range []string{"*.safetensors", divided, "*.pt", "*.pth", "*.bin"} {
		found, err := filepath.Glob(filepath.Join(escape(dir), pattern))
		if err == nil && (len(found) == 1 || len(found) > 1 && pattern == divided) {
			for i := range found {
				found[i] = filepath.Base(found[i])
			}
			return found, nil
		}
		if len(found) > 1 {
			return nil, fmt.Errorf("%s: holds %d files of weights and no index (model.safetensors.index.json): "+
				"download the index too", dir, len(found))
		}
	}
	return nil, fmt.Errorf("%s: holds no weights: want model.safetensors, or model.safetensors.index.json and its parts",
		dir)
}

// divided matches Meta's files, of which each has a part of every tensor.
const divided = "consolidated.[0-9][0-9].pth"

// escape quotes a path as a glob pattern that matches only it.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// readIndex lists the files that an index names, sorted.
func readIndex(path string) ([]string, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"` // by tensor
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	different := map[string]bool{}
	for _, name := range index.Files {
		if name == "" || name != filepath.Base(name) || name == ".." || name == "." {
			return nil, fmt.Errorf("%s: names the file %q: want names of files in the same folder", path, name)
		}
		different[name] = true
	}
	var names []string
	for name := range different {
		names = append(names, name)
	}
	if len(names) == 0 || len(names) > mostShards {
		return nil, fmt.Errorf("%s: names %d files, want 1 to %d", path, len(names), mostShards)
	}
	slices.Sort(names)
	return names, nil
}

// add maps a file and lists its tensors. What it is a shard of stands before their names, if they are parts of tensors
// that other files have parts of, too.
func (f *Folder) add(path, shard string) error {
	m, err := mapped.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	parse := torch.Parse
	if strings.HasSuffix(path, ".safetensors") {
		parse = safetensors.Parse
	}
	f.Files = append(f.Files, File{m, path})
	var tensors []element.Stored
	err = m.Guard(func() (err error) {
		tensors, err = parse(bytes.NewReader(m.Data), int64(len(m.Data)))
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, t := range tensors {
		t.Name = shard + t.Name
		if i, twice := f.byName[t.Name]; twice {
			return fmt.Errorf("%s: tensor %.80q is also in %s: these files do not belong together, download the model again",
				path, t.Name, f.Files[f.Tensors[i].File].Path)
		}
		f.byName[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, Tensor{t, len(f.Files) - 1})
	}
	return nil
}

// View calls use with the bytes of a tensor, which are valid until use returns and must not be written to. It fails
// if the file has been truncated since Open.
func (f *Folder) View(name string, use func(data []byte) error) error {
	i, ok := f.byName[name]
	if !ok {
		return fmt.Errorf("%s: holds no tensor %.80q", f.Path, name)
	}
	t := &f.Tensors[i]
	file := f.Files[t.File]
	err := file.Guard(func() error { return use(file.Data[t.Offset:][:t.Size:t.Size]) })
	if errors.Is(err, mapped.ErrShrunk) || errors.Is(err, mapped.ErrChanged) {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	return err
}

// Find returns a tensor by name, and whether there is one.
func (f *Folder) Find(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Text returns the content of a small file of the folder, up to 256 MiB; nil if there is no such file.
func (f *Folder) Text(name string) ([]byte, error) {
	if f.texts != nil {
		return f.texts[name], nil
	}
	text, err := readText(filepath.Join(f.Path, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func readText(path string) ([]byte, error) {
	file, _, err := safefile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer file.Close()
	text, err := safefile.ReadAll(file, mostText)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// Close unmaps all files. No View may be running.
func (f *Folder) Close() error {
	var errs []error
	for _, file := range f.Files {
		errs = append(errs, file.Close())
	}
	f.Files = nil
	return errors.Join(errs...)
}
