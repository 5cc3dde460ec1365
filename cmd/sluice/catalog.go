package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// catalog says which models can be asked for by name. Names are what a person gave, or files in a folder are called:
// what a client sends is only compared with them.
type catalog interface {
	list() []string
	path(name string) (path string, ok bool)
}

// catalogs are several; of equal names the first one's counts.
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

// listed are models that were named on the command line.
type listed []namedFile

func (l listed) list() (all []string) {
	for _, m := range l {
		all = append(all, m.name)
	}
	return all
}

func (l listed) path(name string) (string, bool) {
	for _, m := range l {
		if m.name == name {
			return m.path, true
		}
	}
	return "", false
}

// named gives those a name that have none: as their files say. Later ones of a name that is taken get a number.
func named(e *env, files []namedFile) (listed, error) {
	all := make(listed, 0, len(files))
	for _, m := range files {
		if m.name == "" {
			file, err := e.openWeights(m.path)
			if err != nil {
				return nil, err
			}
			m.name = file.Name
			if own, err := file.Meta.String("general.name"); err == nil && own != "" {
				m.name = own
			}
			if err := file.Close(); err != nil {
				return nil, err
			}
		}
		first := m.name
		for n := 2; slices.Contains(all.list(), m.name); n++ {
			m.name = fmt.Sprintf("%s-%d", first, n)
		}
		all = append(all, m)
	}
	return all, nil
}

// folder is the model files in one, which may come and go.
type folder struct {
	dir string
	now func() time.Time

	mu     sync.Mutex
	looked time.Time
	files  map[string]string // by name
}

// fresh is how long what was seen in a folder is good.
const fresh = time.Second

// openFolder looks whether a folder can be read.
func openFolder(dir string, now func() time.Time) (*folder, error) {
	f := &folder{dir: dir, now: now}
	if _, err := os.ReadDir(dir); err != nil {
		return nil, fmt.Errorf("--models %s: %w: want a folder with model files (GGUF)", dir, err)
	}
	return f, nil
}

// partOf matches the end of the name of one of several files of a model.
var partOf = regexp.MustCompile(`-(\d{5})-of-\d{5}$`)

// look reads the folder, if that was long ago. The caller holds mu.
func (f *folder) look() {
	if f.files != nil && f.now().Sub(f.looked) < fresh {
		return
	}
	f.looked, f.files = f.now(), map[string]string{}
	entries, _ := os.ReadDir(f.dir) // a folder that has gone has no models
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".gguf")
		if !ok || entry.IsDir() || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "mmproj") {
			continue
		}
		if part := partOf.FindStringSubmatch(name); part != nil {
			if part[1] != "00001" {
				continue
			}
			name = strings.TrimSuffix(name, part[0])
		}
		f.files[name] = filepath.Join(f.dir, entry.Name())
	}
}

func (f *folder) list() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	for name := range f.files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (f *folder) path(name string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	path, ok := f.files[name]
	return path, ok
}
