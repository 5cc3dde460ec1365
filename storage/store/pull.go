package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/system"
)

// Pull is the transfer of a model into the store. Files that have arrived are kept while it runs, and also if its
// process is killed; a later pull of the same name continues with them.
type Pull struct {
	store    *Store
	name     Name
	manifest Manifest
	path     string   // path of note
	note     *os.File // holds the manifest of the pull; locked as long as this process lives
}

// Begin starts a pull of a model under its manifest's name. It fails with a NoRoom if the disk lacks space.
func (s *Store) Begin(ctx context.Context, m Manifest) (*Pull, error) {
	m.Version = manifestVersion
	data, err := m.encode()
	if err != nil {
		return nil, err
	}
	name, err := m.Named()
	if err != nil {
		return nil, err
	}
	p := &Pull{store: s, name: name, manifest: m}
	err = s.change(ctx, func() error {
		if _, err := s.dropPulls(name); err != nil {
			return err
		}
		if err := s.room(&m); err != nil {
			return err
		}
		random := make([]byte, 8)
		_, _ = rand.Read(random) // it never fails
		p.path = s.path(pullsFolder, hex.EncodeToString(random)+".json")
		var err error
		if p.note, err = safefile.Grow(p.path); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if _, err := p.note.Write(data); err != nil {
			return err
		}
		// collect removes files that only an earlier pull of this name needed.
		return errors.Join(p.note.Sync(), s.collect())
	})
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Commit stores the manifest; all files must be there. An older model of that name is removed.
func (p *Pull) Commit(ctx context.Context) error {
	return p.end(ctx, func() error {
		if !p.store.Complete(&p.manifest) {
			return fmt.Errorf("%s: not all of its files are there", p.name)
		}
		p.manifest.Pulled = p.manifest.Pulled.UTC().Truncate(time.Second)
		return p.store.put(&p.manifest, p.name, true)
	})
}

// Abandon removes the files that have come, except those of other models.
func (p *Pull) Abandon(ctx context.Context) error { return p.end(ctx, func() error { return nil }) }

func (p *Pull) end(ctx context.Context, how func() error) error {
	return p.store.change(ctx, func() error {
		if err := how(); err != nil {
			return err
		}
		if err := removed(os.Remove(p.path)); err != nil {
			return err
		}
		return p.store.collect()
	})
}

// Close ends the pull as the end of its process would: files that have come are kept, unless Commit or Abandon was
// called.
func (p *Pull) Close() error {
	if p.note == nil {
		return nil
	}
	return p.note.Close()
}

// NoRoom is the error of a model that does not fit the disk.
type NoRoom struct {
	Needed, Free int64 // bytes
	Store        string
}

func (n *NoRoom) Error() string {
	return fmt.Sprintf("it takes %s, and %s has room for %s: make room (sluice list, sluice rm), or name a folder on another disk by SLUICE_STORE",
		amount(n.Needed), n.Store, amount(n.Free))
}

// amount formats bytes for people.
func amount(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// room fails with a NoRoom if the missing bytes of a model do not fit the disk.
func (s *Store) room(m *Manifest) error {
	needed := m.Size() - s.Arrived(m)
	if free, err := system.Room(s.dir); err == nil && needed > free {
		return &NoRoom{needed, free, s.dir}
	}
	return nil
}

// Complete reports whether all files of a model are there, judging by their sizes.
func (s *Store) Complete(m *Manifest) bool {
	for i := range m.Files {
		if !s.has(&m.Files[i]) {
			return false
		}
	}
	return true
}

// Unfinished lists, in no order, the pulls that run or were killed. A note that cannot be read was incomplete when
// its process was killed; it is left out, and removed with the next pull.
func (s *Store) Unfinished() ([]Model, error) {
	var all []Model
	err := s.eachPull(func(path string, m *Manifest, name Name) error {
		if m != nil {
			all = append(all, Model{Name: name, Manifest: *m})
		}
		return nil
	})
	return all, err
}

// dropPulls removes the notes of a name's pulls whose processes have ended, and all unreadable notes. It returns how
// many notes of the name it has removed.
func (s *Store) dropPulls(name Name) (n int, err error) {
	err = s.eachPull(func(path string, m *Manifest, named Name) error {
		if m != nil && named != name {
			return nil
		}
		f, err := safefile.Grow(path)
		if err != nil {
			return nil //nolint:nilerr // its process lives: the note is locked
		}
		defer f.Close()
		if m != nil {
			n++
		}
		return os.Remove(path)
	})
	return n, err
}

// eachPull visits the notes of pulls; m is nil for an unreadable one.
func (s *Store) eachPull(visit func(path string, m *Manifest, name Name) error) error {
	entries, err := os.ReadDir(s.path(pullsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		path := filepath.Join(s.path(pullsFolder), entry.Name())
		m, err := readManifest(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var name Name
		if err == nil {
			name, err = m.Named()
		}
		if err != nil {
			m = nil
		}
		if err := visit(path, m, name); err != nil {
			return err
		}
	}
	return nil
}

// uploaded reports whether the content of a file was uploaded, for a model that is yet to be made (see Upload).
func (s *Store) uploaded(f *File) bool {
	size, here := s.Size(f.Digest)
	return here && size == f.Size
}

// Arrived returns the number of bytes of a model that are there, incomplete files included.
func (s *Store) Arrived(m *Manifest) (n int64) {
	seen := map[Digest]bool{}
	for i := range m.Files {
		f := &m.Files[i]
		switch {
		case seen[f.Digest]:
		case s.has(f), s.uploaded(f):
			n += f.Size
		default:
			n += s.piecesOf(f).bytes()
		}
		seen[f.Digest] = true
	}
	return n
}
