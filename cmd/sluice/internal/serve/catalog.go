package serve

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/storage/hub"
)

// catalog lists the models that clients can ask for by name. Names come from the command line or from files in a
// folder: what a client sends is only compared with them.
type catalog interface {
	list() []string
	path(name string) (path string, ok bool)
	forget() // what was found, so that the next look searches again
}

// catalogs are several catalogs; of models with the same name, the first one counts.
type catalogs []catalog

func (c catalogs) list() (all []string) {
	for _, one := range c {
		for _, name := range one.list() {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

func (c catalogs) path(name string) (string, bool) {
	for _, one := range c {
		if path, ok := one.path(name); ok {
			return path, true
		}
	}
	return "", false
}

func (c catalogs) forget() {
	for _, one := range c {
		one.forget()
	}
}

// listed are models that were named on the command line.
type listed []models.NamedFile

func (l listed) list() (all []string) {
	for _, m := range l {
		all = append(all, m.Name)
	}
	return all
}

func (l listed) path(name string) (string, bool) {
	for _, m := range l {
		if m.Name == name {
			return m.Path, true
		}
	}
	return "", false
}

func (listed) forget() {}

// named gives names to files that have none: those in their metadata, without what is awkward to type. A name that is
// taken gets a number behind it.
func named(e *env.Env, files []models.NamedFile) (listed, error) {
	all := make(listed, 0, len(files))
	for _, m := range files {
		if m.Name == "" {
			file, err := namedmodel.OpenWeights(e.Lookup, m.Path)
			if err != nil {
				return nil, err
			}
			m.Name = file.Name
			if own, err := file.Meta.String("general.name"); err == nil {
				m.Name = cmp.Or(slug(own), m.Name)
			}
			if err := file.Close(); err != nil {
				return nil, err
			}
		}
		m.Name = askable(m.Name)
		first := m.Name
		for n := 2; slices.Contains(all.list(), m.Name); n++ {
			m.Name = fmt.Sprintf("%s-%d", first, n)
		}
		all = append(all, m)
	}
	return all, nil
}

// slug makes a title, as files have it, into a name that needs no quotes in a shell, an address or YAML: whatever is
// neither letter, digit nor one of . _ - becomes a hyphen.
func slug(title string) string {
	words := strings.FieldsFunc(title, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r) || r == utf8.RuneError
	})
	return strings.Trim(strings.Join(words, "-"), "-.")
}

// found is a catalog of models in a place where they come and go.
type found struct {
	now  func() time.Time
	find func() map[string]string // values of -m by name

	mu     sync.Mutex
	looked time.Time
	files  map[string]string
}

// fresh is for how long the result of a search is used.
const fresh = time.Second

// look returns the models by name. It searches again if the last search is older than fresh.
func (f *found) look() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil || f.now().Sub(f.looked) >= fresh {
		f.looked, f.files = f.now(), f.find()
	}
	return f.files
}

// forget makes the next look search again.
func (f *found) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = nil
}

func (f *found) list() []string { return slices.Sorted(maps.Keys(f.look())) }

func (f *found) path(name string) (string, bool) {
	path, ok := f.look()[name]
	return path, ok
}

// folder makes the catalog of the model files in a folder, if it can be read.
func folder(dir string, now func() time.Time) (*found, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, fmt.Errorf("--models %w: want a folder with model files (GGUF)", env.OnFile(dir, err))
	}
	return &found{now: now, find: func() map[string]string { return filesIn(dir) }}, nil
}

// partOf matches the end of the name of one of several files of a model.
var partOf = regexp.MustCompile(`-(\d{5})-of-\d{5}$`)

// deepest is how many folders below that of --models files are looked for: LM Studio and the cache of Hugging Face
// keep them some folders deep.
const deepest = 6

// filesIn are the model files of a folder and of those in it, by their names. Of files of the same name the one nearest
// to the folder has it, and others the path from there.
func filesIn(dir string) map[string]string {
	files, folders := map[string]string{}, []string{"."}
	for depth := 0; depth <= deepest && len(folders) > 0; depth++ {
		var below []string
		for _, folder := range folders {
			entries, _ := os.ReadDir(filepath.Join(dir, folder)) // a folder that has gone has no models
			for _, entry := range entries {
				at := filepath.Join(folder, entry.Name())
				if entry.IsDir() {
					if !strings.HasPrefix(entry.Name(), ".") {
						below = append(below, at)
					}
					continue
				}
				name, ok := modelName(entry.Name())
				if !ok {
					continue
				}
				if files[name] != "" {
					name = askable(filepath.ToSlash(filepath.Join(folder, name)))
				}
				files[name] = filepath.Join(dir, at)
			}
		}
		folders = below
	}
	return files
}

// modelName is the name of a model by that of its file, or of the first of its files.
func modelName(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, ".gguf")
	if !ok || strings.HasPrefix(name, ".") || hub.IsProjector(name) {
		return "", false
	}
	if part := partOf.FindStringSubmatch(name); part != nil {
		if part[1] != "00001" {
			return "", false
		}
		name = strings.TrimSuffix(name, part[0])
	}
	return askable(name), true
}

// stored makes the catalog of the models in the store.
func stored(e *env.Env) (*found, error) {
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return nil, err
	}
	return &found{now: e.Now, find: func() map[string]string {
		files := map[string]string{}
		all, _ := s.List() // what cannot be listed is not there
		for i := range all {
			if _, err := s.Path(&all[i]); all[i].Damage == nil && err == nil {
				files[all[i].Name.String()] = all[i].Name.Full() // the store's name also says how the model runs
			}
		}
		return files
	}}, nil
}

// askable is the name of a model in valid UTF-8, as JSON and metrics need it: names of files and texts of model files
// may be any bytes.
func askable(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
