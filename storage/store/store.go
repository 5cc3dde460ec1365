// Package store keeps models by name in a folder: files by their content, and a manifest for each name.
//
// Many processes may use a store at once, and any of them may be killed at any moment. The package opens no
// connections: storage/hub brings the bytes. The layout and its reasons are in docs/adr/0023.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// Folders and files of a store.
const (
	markFile      = "sluice-store" // marks the folder as a store: nothing is ever removed from a folder without it
	lockFile      = "lock"         // held for moments, while names or files come or go
	modelsFolder  = "models"       // HOST/OWNER/MODEL/TAG.json: manifests
	blobsFolder   = "blobs"        // sha256-HEX: files, complete and read-only
	partsFolder   = "partial"      // sha256-HEX: incomplete blobs, each with a list of the pieces that have arrived
	pullsFolder   = "pulls"        // ID.json: manifests of pulls that run, or whose process was killed
	uploadsFolder = "uploads"      // sha256-HEX: files that a model is to be made of
	membersFolder = "members"      // MEMBER.member/MODEL.model/*.gguf: what members of a cluster have lent
	viewsFolder   = "views"        // ID/FILE: links to blobs under the names that files had, made from a manifest
)

// markText is the content of the mark: the version of the layout.
const markText = "sluice store 1\n"

// Store is a folder of models. Its methods are safe for use by many goroutines and processes at once.
type Store struct{ dir string }

// Open opens the store in a folder. A folder that is empty or missing becomes a store with the first change; any
// other folder without the mark is an error.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir}
	switch marked, err := s.marked(); {
	case err != nil:
		return nil, err
	case marked:
		return s, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is no store of models, and not empty: name another folder by SLUICE_STORE", dir)
	}
	return s, nil
}

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// marked reports whether the folder has the mark of a store. A mark of another version is an error.
func (s *Store) marked() (bool, error) {
	f, _, err := safefile.Open(s.path(markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", s.path(markFile), err)
	}
	defer f.Close()
	text, err := safefile.ReadAll(f, 64)
	if err != nil || string(text) != markText {
		return false, fmt.Errorf("%s says %q, want %q: the store belongs to another version of sluice", s.path(markFile),
			text, markText)
	}
	return true, nil
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// blob returns the path of a complete file by its digest.
func (s *Store) blob(d Digest) string { return s.path(blobsFolder, d.file()) }

// has reports whether a file is there, judging by its size.
func (s *Store) has(f *File) bool {
	info, err := os.Lstat(s.blob(f.Digest))
	return err == nil && info.Mode().IsRegular() && info.Size() == f.Size
}

// Lent is the folder in which a model lies that a member of a cluster has lent, if it has.
func (s *Store) Lent(member, model string) string {
	return s.path(membersFolder, url.PathEscape(member)+".member", url.PathEscape(model)+".model")
}

// MakeLent makes the folder above that of Lent.
func (s *Store) MakeLent(member, model string) error {
	if err := s.create(); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Dir(s.Lent(member, model)), 0o755)
}

// create makes the folders of a store, unless they are there.
func (s *Store) create() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if marked, err := s.marked(); err != nil {
		return err
	} else if !marked {
		err := safefile.Write(s.path(markFile), []byte(markText), 0o644, false)
		if err != nil && !errors.Is(err, safefile.ErrTaken) {
			return fmt.Errorf("%s: %w", s.path(markFile), err)
		}
	}
	for _, folder := range []string{modelsFolder, blobsFolder, partsFolder, pullsFolder, uploadsFolder, viewsFolder,
		membersFolder} {
		if err := os.Mkdir(s.path(folder), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// change calls do under the store's lock, which is never held for as long as a download takes.
func (s *Store) change(ctx context.Context, do func() error) error {
	if err := s.create(); err != nil {
		return err
	}
	lock, err := hold(ctx, s.path(lockFile), 5*time.Millisecond, nil)
	if err != nil {
		return err
	}
	defer lock.Close()
	return do()
}

// hold locks a file, which it creates if need be. While another process holds the lock, it calls waiting, if that is
// not nil, and tries again. A lock ends with its process, however that ends.
func hold(ctx context.Context, path string, again time.Duration, waiting func()) (*os.File, error) {
	for {
		f, err := safefile.Grow(path)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, safefile.ErrBusy) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(again):
		}
	}
}
