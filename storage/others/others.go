package others

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/storage/store"
)

// Prefixes of names, by program.
const (
	ollamaPrefix   = "ollama:"
	lmStudioPrefix = "lmstudio:"
	hubPrefix      = "hf:"
)

// Places are the folders where other programs keep models. Those that are missing have none.
type Places struct{ Ollama, LMStudio, HuggingFace []string }

// Model is a model that another program keeps.
type Model struct {
	Name    string // by which -m takes it: that of the other program behind a prefix
	Program string // that keeps it
	Path    string // of its file, or of the first of several
	Size    int64  // bytes of all its files
	Damage  error  // why it cannot be used, or nil

	repository, tag, stem string // parts of the name of a model that is a file in a folder
	manifest              string // path of Ollama's
	blobs                 string // the folder where Ollama keeps what the manifest lists
}

// IsName reports whether a text begins as the name of a model that another program keeps.
func IsName(text string) bool {
	for _, prefix := range []string{ollamaPrefix, lmStudioPrefix, hubPrefix} {
		if strings.HasPrefix(text, prefix) && len(text) > len(prefix) {
			return true
		}
	}
	return false
}

// List returns the models of all places, sorted by name.
func List(p Places) []Model { return list(p, "") }

// list returns the models whose names begin with a prefix. Of several with one name, the first one that can be used
// counts.
func list(p Places, prefix string) (all []Model) {
	for _, from := range []struct {
		prefix string
		dirs   []string
		find   func(root string) []Model
	}{{ollamaPrefix, p.Ollama, ollama}, {lmStudioPrefix, p.LMStudio, lmStudio}, {hubPrefix, p.HuggingFace, huggingFace}} {
		for _, dir := range from.dirs {
			root, err := filepath.EvalSymlinks(dir) // the folder itself may be a link to another disk
			if err == nil && strings.HasPrefix(from.prefix, prefix) {
				all = append(all, from.find(root)...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Model) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.rank(), b.rank()))
	})
	return slices.CompactFunc(all, func(a, b Model) bool { return a.Name == b.Name })
}

// Absent is the error for a name that no other program has a model of.
type Absent struct{ Name string }

func (a *Absent) Error() string {
	return fmt.Sprintf("%.200q is no model that another program keeps here: sluice list --all shows those that are", a.Name)
}

// Find returns the model that a name means. Upper and lower case count as equal. Without a tag it is the one that
// store.Prefer chooses. If there is none, the error is an Absent; one that cannot be used is an error that says why.
func Find(p Places, name string) (*Model, error) {
	prefix := name[:strings.Index(name, ":")+1]
	all := list(p, prefix)
	if prefix == ollamaPrefix {
		name = strings.TrimSuffix(name, ":"+latest)
	}
	var found []Model
	for _, m := range all {
		if strings.EqualFold(m.Name, name) {
			return m.usable()
		}
		if m.repository != "" && m.means(strings.TrimPrefix(name, prefix)) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil, &Absent{name}
	}
	slices.SortStableFunc(found, func(a, b Model) int { return cmp.Compare(a.rank(), b.rank()) })
	if i := slices.IndexFunc(found, func(m Model) bool { return m.Damage != nil }); i > 0 {
		found = found[:i]
	}
	tags := make([]string, len(found))
	for i := range found {
		tags[i] = found[i].tag
	}
	return found[store.Prefer(tags)].usable()
}

// rank is 0 for a model that can be used, else 1.
func (m *Model) rank() int {
	if m.Damage != nil {
		return 1
	}
	return 0
}

// Known returns the model that another program keeps of a name of our store; nil, if there is none.
func Known(p Places, n store.Name) *Model {
	tagged := n.Model
	if n.Tag != "" {
		tagged += ":" + n.Tag
	}
	names := []string{hubPrefix + n.Owner + "/" + tagged, lmStudioPrefix + n.Owner + "/" + tagged,
		ollamaPrefix + store.HuggingFace + "/" + n.Owner + "/" + tagged}
	if n.Host == store.Ollama {
		if names = []string{ollamaPrefix + n.Owner + "/" + tagged}; n.Owner == library {
			names = []string{ollamaPrefix + tagged}
		}
	}
	for _, name := range names {
		if m, err := Find(p, name); err == nil {
			return m
		}
	}
	return nil
}

func (m *Model) usable() (*Model, error) {
	if m.Damage != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, m.Damage)
	}
	return m, nil
}

// means reports whether a text behind the prefix, as a person wrote it, is the model's repository, with nothing, a tag
// or a file behind it.
func (m *Model) means(text string) bool {
	if len(text) < len(m.repository) || !strings.EqualFold(text[:len(m.repository)], m.repository) {
		return false
	}
	rest := text[len(m.repository):]
	if rest == "" {
		return true
	}
	said := strings.TrimSuffix(rest[1:], ".gguf")
	file := strings.TrimSuffix(filepath.Base(m.Path), ".gguf")
	return (rest[0] == ':' || rest[0] == '/') &&
		(strings.EqualFold(said, m.tag) || strings.EqualFold(said, m.stem) || strings.EqualFold(said, file))
}

// inside returns the state of the file at a path, which may be a link, if it lies in the folder root.
func inside(root, path string) (fs.FileInfo, error) {
	at, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("a file of it is missing")
	}
	if err != nil {
		return nil, err
	}
	if rel, err := filepath.Rel(root, at); err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("it is a link to a file outside of %s: name that file", root)
	}
	info, err := os.Lstat(at)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	return info, err
}

// mostEntries bounds how many files and folders are looked at below a folder.
const mostEntries = 20000

// below lists the files in a folder and in those below it, to a depth, as paths with slashes from there. It looks at no
// more than most files and folders. Links to folders are not followed, hidden ones left out.
func below(root string, deepest, most int) (paths []string) {
	seen := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // what cannot be read has no models
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		if seen++; seen > most || d == nil {
			return fs.SkipAll
		}
		switch hidden := rel != "." && strings.HasPrefix(d.Name(), "."); {
		case err != nil && d.IsDir(), d.IsDir() && (hidden || strings.Count(rel, "/") >= deepest):
			return fs.SkipDir
		case err == nil && !d.IsDir() && !hidden:
			paths = append(paths, rel)
		}
		return nil
	})
	return paths
}
