package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Absent is the error for a name that the store has no model of.
type Absent struct {
	Name  Name
	Store string // its folder
}

func (a *Absent) Error() string {
	return fmt.Sprintf("%s is not in the store (%s), which sluice list shows: get it with sluice pull %s", a.Name, a.Store, a.Name)
}

// Model is a model of the store.
type Model struct {
	Name Name
	Manifest
	Damage error // why the manifest cannot be read, or nil; if not nil, only Name is set
}

// List returns the models, sorted by name. Models that are added or removed meanwhile may be in the list or not.
func (s *Store) List() ([]Model, error) {
	var all []Model
	root := s.path(modelsFolder)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone again, or nothing was ever pulled
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		name, ok := nameAt(filepath.ToSlash(rel))
		if !ok {
			return nil
		}
		m, err := readManifest(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && m.Name != name.Full() {
			err = fmt.Errorf("is that of %.80q", m.Name)
		}
		model := Model{Name: name}
		if err != nil {
			model.Damage = fmt.Errorf("%s: %w: sluice rm %s, and pull it again", path, err, name)
		} else {
			model.Manifest = *m
		}
		all = append(all, model)
		return nil
	})
	slices.SortFunc(all, func(a, b Model) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name.String()), strings.ToLower(b.Name.String())),
			cmp.Compare(a.Name.Full(), b.Name.Full()))
	})
	return all, err
}

// nameAt returns the name whose manifest lies at a path below the models' folder.
func nameAt(rel string) (Name, bool) {
	rel, isManifest := strings.CutSuffix(rel, ".json")
	parts := strings.Split(rel, "/")
	if !isManifest || len(parts) != 4 {
		return Name{}, false
	}
	n, err := ParseName(strings.Join(parts[:3], "/") + ":" + parts[3])
	return n, err == nil && n.Host == parts[0]
}

// manifestAt returns the path of the manifest of a full name.
func (s *Store) manifestAt(n Name) string {
	return s.path(modelsFolder, n.Host, n.Owner, n.Model, n.Tag+".json")
}

// Find returns the model that a name means: the exact one, else one that differs in upper and lower case, else, if n
// has no tag, the one that Prefer chooses. If there is none, the error is an Absent.
func (s *Store) Find(n Name) (*Model, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	var found []Model
	for _, m := range all {
		if m.Name == n {
			return intact(&m)
		}
		if n.matches(m.Name) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil, &Absent{n, s.dir}
	}
	tags := make([]string, len(found))
	for i, m := range found {
		tags[i] = m.Name.Tag
	}
	return intact(&found[Prefer(tags)])
}

func intact(m *Model) (*Model, error) {
	if m.Damage != nil {
		return nil, m.Damage
	}
	return m, nil
}

// Resolve returns the path to open for a name: of a GGUF file, of the first of several parts, or of a folder.
func (s *Store) Resolve(name string) (string, error) {
	n, err := ParseName(name)
	if err != nil {
		return "", err
	}
	m, err := s.Find(n)
	if err != nil {
		return "", err
	}
	return s.Path(m)
}

// Path returns the path of the file or folder to open for a model. It fails if bytes of the model are missing.
func (s *Store) Path(m *Model) (string, error) {
	folder := s.path(viewsFolder, m.view())
	for _, f := range m.named() {
		path := filepath.Join(folder, f.Name)
		info, err := os.Stat(path)
		if err == nil && info.Size() != f.Size {
			err = fmt.Errorf("has %d bytes, want %d", info.Size(), f.Size)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w: sluice pull %s mends it", path, bare(err), m.Name)
		}
	}
	if m.IsFolder() {
		return folder, nil
	}
	return filepath.Join(folder, m.Weights()[0].Name), nil
}

// bare returns an error without the file's name: the caller states it.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, syscall.ENOENT) {
		return errors.New("is gone")
	}
	return err
}
