package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/system"
)

// Copy gives a model another name. If replace is set, a model that has the name already loses it; otherwise that is
// an error. Files are not copied.
func (s *Store) Copy(ctx context.Context, from, to Name, replace bool) error {
	to = to.tagged()
	return s.change(ctx, func() error {
		m, err := s.Find(from)
		if err != nil {
			return err
		}
		if other, err := s.Find(to); err == nil && strings.EqualFold(other.Name.Full(), to.Full()) {
			to = other.Name // case does not count here, and no two names differ by it alone
		}
		again := m.Manifest
		again.Name = to.Full()
		err = s.put(&again, to, replace)
		if errors.Is(err, safefile.ErrTaken) {
			err = fmt.Errorf("%s is there already: sluice rm %s, or choose another name", to, to)
		}
		if err != nil || !replace {
			return err
		}
		return s.collect()
	})
}

// Remove removes a name, and the files that no other name needs; it returns the number of bytes freed. A pull of the
// name that was not finished is removed too.
func (s *Store) Remove(ctx context.Context, n Name) (freed int64, err error) {
	err = s.change(ctx, func() error {
		name, all, err := s.whole(n)
		if err != nil {
			return err
		}
		for i := range all {
			freed = max(freed, s.Arrived(&all[i].Manifest))
		}
		if err := s.forget(name); err != nil {
			return err
		}
		if err := s.collect(); err != nil {
			return err
		}
		kept := int64(0)
		for i := range all {
			kept = max(kept, s.Arrived(&all[i].Manifest))
		}
		freed -= kept
		return nil
	})
	return freed, err
}

// forget removes the manifest of a name, and the notes of its pulls whose processes have ended.
func (s *Store) forget(name Name) error {
	dropped, err := s.dropPulls(name)
	if err != nil {
		return err
	}
	err = os.Remove(s.manifestAt(name))
	if errors.Is(err, fs.ErrNotExist) && dropped == 0 {
		return fmt.Errorf("%s is being pulled: stop that first", name)
	}
	if err := removed(err); err != nil {
		return err
	}
	s.prune(filepath.Dir(s.manifestAt(name)))
	return nil
}

// prune removes a folder of manifests, and those above it, as far as they are empty.
func (s *Store) prune(folder string) {
	for ; folder != s.path(modelsFolder); folder = filepath.Dir(folder) {
		if os.Remove(folder) != nil { // it is not empty
			return
		}
	}
}

// whole returns the full name of the model, or unfinished pull, that n means, and its entries. It does not choose
// among several quantisations. Models whose manifests cannot be read may be removed too.
func (s *Store) whole(n Name) (Name, []Model, error) {
	models, err := s.List()
	if err != nil {
		return n, nil, err
	}
	unfinished, err := s.Unfinished()
	if err != nil {
		return n, nil, err
	}
	found := map[Name][]Model{}
	for _, m := range append(models, unfinished...) {
		if n.matches(m.Name) {
			found[m.Name] = append(found[m.Name], m)
		}
	}
	if found[n] != nil {
		return n, found[n], nil
	}
	names := slices.SortedFunc(maps.Keys(found), func(a, b Name) int { return cmp.Compare(a.Full(), b.Full()) })
	switch len(names) {
	case 0:
		return n, nil, &Absent{n, s.dir}
	case 1:
		return names[0], found[names[0]], nil
	}
	return n, nil, fmt.Errorf("there are %s and %s: say which is to go", names[0], names[1])
}

// put stores a manifest, whose files must all be there, and its view. The caller must hold the store's lock.
func (s *Store) put(m *Manifest, name Name, replace bool) error {
	data, err := m.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := s.show(m); err != nil {
		return err
	}
	path := s.manifestAt(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := safefile.Write(path, data, 0o644, replace); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// halfView is the prefix of the names of incomplete views. A killed process may leave some behind.
const halfView = ".half-"

// show makes the view of a model: the folder in which its files have their names.
func (s *Store) show(m *Manifest) error {
	folder := s.path(viewsFolder, m.view())
	if s.shown(m) {
		return nil
	}
	if err := s.hide(folder); err != nil { // a view that lacks links was changed by hand
		return err
	}
	half, err := os.MkdirTemp(s.path(viewsFolder), halfView)
	if err != nil {
		return err
	}
	defer os.RemoveAll(half) // gone already, if all went well
	for _, f := range m.named() {
		if !s.has(&f) {
			return fmt.Errorf("%s is not there: the store was changed by hand", s.blob(f.Digest))
		}
		if err := system.LinkTo(linkTo(&f), filepath.Join(half, f.Name)); err != nil {
			return err
		}
	}
	if err := os.Chmod(half, 0o755); err != nil {
		return err
	}
	return safefile.Publish(half, folder, true)
}

// linkTo returns the target of a file's link in a view.
func linkTo(f *File) string { return filepath.Join("..", "..", blobsFolder, f.Digest.file()) }

// shown reports whether a model's view is there, with all of its links.
func (s *Store) shown(m *Manifest) bool {
	for _, f := range m.named() {
		if !system.LinksTo(s.path(viewsFolder, m.view(), f.Name), linkTo(&f)) {
			return false
		}
	}
	return true
}

// hide removes a view, if it is there. It renames the view first, so that a killed process leaves no part of it under
// its name.
func (s *Store) hide(folder string) error {
	half, err := os.MkdirTemp(s.path(viewsFolder), halfView)
	if err != nil {
		return err
	}
	return cmp.Or(removed(os.Rename(folder, filepath.Join(half, "gone"))), os.RemoveAll(half))
}

// collect removes the files that no name and no pull needs, and those that killed processes left behind. It removes
// nothing while a manifest cannot be read.
func (s *Store) collect() error {
	models, err := s.List()
	if err != nil {
		return err
	}
	pulls, err := s.Unfinished()
	if err != nil {
		return err
	}
	blobs, parts, views := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range append(models, pulls...) {
		if m.Damage != nil {
			return m.Damage
		}
		views[m.view()] = true
		for _, f := range m.Files {
			blobs[f.Digest.file()] = true
			if !s.has(&f) {
				parts[f.Digest.file()], parts[f.Digest.file()+piecesSuffix] = true, true
			}
		}
	}
	return cmp.Or(s.sweepModels(), s.sweep(viewsFolder, views), s.sweep(partsFolder, parts), s.sweep(blobsFolder, blobs),
		s.sweepUploads())
}

// sweepModels removes incomplete manifests of killed processes (package safefile).
func (s *Store) sweepModels() error {
	var left []string
	err := filepath.WalkDir(s.path(modelsFolder), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasPrefix(d.Name(), ".") && strings.HasSuffix(d.Name(), ".json.sluice") {
			left = append(left, path)
		}
		return removed(err)
	})
	for _, path := range left {
		err = cmp.Or(err, removed(os.Remove(path)))
		s.prune(filepath.Dir(path))
	}
	return err
}

// sweep removes the files of a folder that are not needed.
func (s *Store) sweep(folder string, needed map[string]bool) error {
	entries, err := os.ReadDir(s.path(folder))
	for _, entry := range entries {
		// While a file is replaced, its new content lies beside it under this name (package safefile).
		name := strings.TrimSuffix(strings.TrimPrefix(entry.Name(), "."), ".sluice")
		switch path := s.path(folder, entry.Name()); {
		case needed[name]:
		case folder == viewsFolder && !strings.HasPrefix(entry.Name(), halfView):
			err = cmp.Or(err, s.hide(path))
		default:
			err = cmp.Or(err, os.RemoveAll(path))
		}
	}
	return err
}
