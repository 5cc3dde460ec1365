package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/system"
)

// uploadsLast bounds how long an uploaded file waits for its model.
const uploadsLast = 24 * time.Hour

// Scratch is a folder on the store's disk for incomplete files. Close removes it; a killed process's folder is
// removed later.
type Scratch struct {
	Dir  string
	lock *os.File // held as long as its process lives
}

const (
	scratchFolder = ".half-" // prefix of the folder's name
	scratchLock   = ".lock"  // file in the folder, locked while its process lives
)

// Scratch makes a scratch folder, and first removes files that the store no longer needs.
func (s *Store) Scratch(ctx context.Context) (*Scratch, error) {
	c := &Scratch{}
	return c, s.change(ctx, func() (err error) {
		if err := s.collect(); err != nil {
			return err
		}
		if c.Dir, err = os.MkdirTemp(s.path(uploadsFolder), scratchFolder); err != nil {
			return err
		}
		c.lock, err = safefile.Grow(filepath.Join(c.Dir, scratchLock))
		return err
	})
}

// Close removes the folder and all that is in it.
func (c *Scratch) Close() error { return errors.Join(os.RemoveAll(c.Dir), c.lock.Close()) }

// Size returns the size in bytes of the file of a digest, and whether it is here: as a model's file or as an upload.
func (s *Store) Size(d Digest) (bytes int64, here bool) {
	for _, path := range []string{s.blob(d), s.path(uploadsFolder, d.file())} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return info.Size(), true
		}
	}
	return 0, false
}

// Upload stores a file for a model that is made within a day, and returns its digest. If want is not empty and the
// content has another digest, the error is a WrongContent and nothing is kept. size is the expected length in bytes,
// -1 if it is unknown; a NoRoom refuses a file that does not fit the disk.
func (s *Store) Upload(ctx context.Context, want Digest, size int64, from io.Reader) (Digest, error) {
	if free, err := system.Room(s.dir); err == nil && size > free {
		return "", &NoRoom{size, free, s.dir}
	}
	scratch, err := s.Scratch(ctx)
	if err != nil {
		return "", err
	}
	defer scratch.Close()
	half, err := system.OpenFile(filepath.Join(scratch.Dir, "file"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	defer half.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(half, sum), io.LimitReader(from, mostSize))
	if err != nil {
		return "", err
	}
	found := digestFrom([sha256.Size]byte(sum.Sum(nil)))
	if want != "" && found != want {
		return "", &WrongContent{File{Name: string(want), Size: n, Digest: want}, found}
	}
	if _, here := s.Size(found); here {
		return found, nil
	}
	if err := errors.Join(half.Chmod(0o444), half.Sync()); err != nil {
		return "", err
	}
	return found, safefile.Publish(half.Name(), s.path(uploadsFolder, found.file()), true)
}

// Blob returns the path of the file of a digest; it fails if there is none.
func (s *Store) Blob(d Digest) (path string, err error) {
	for _, path := range []string{s.blob(d), s.path(uploadsFolder, d.file())} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w: upload it first", d, fs.ErrNotExist)
}

// sweepUploads removes uploaded files that no model has used within uploadsLast, and the scratch folders of killed
// processes.
func (s *Store) sweepUploads() (err error) {
	entries, dirErr := os.ReadDir(s.path(uploadsFolder))
	if dirErr != nil && !errors.Is(dirErr, fs.ErrNotExist) {
		return dirErr
	}
	for _, entry := range entries {
		path := s.path(uploadsFolder, entry.Name())
		if strings.HasPrefix(entry.Name(), scratchFolder) {
			lock, busy := safefile.Grow(filepath.Join(path, scratchLock))
			if busy == nil { // its process was killed
				err = errors.Join(err, os.RemoveAll(path), lock.Close())
			}
			continue
		}
		info, infoErr := entry.Info()
		if infoErr == nil && time.Since(info.ModTime()) > uploadsLast {
			err = errors.Join(err, removed(os.Remove(path)))
		}
	}
	return err
}

// Layer is a file of a model that is made here. Its content is Data, or an upload, or a file of another model.
type Layer struct {
	File
	Data []byte // if not nil, Make computes Size and Digest
}

// Make stores a model of the given files under a name. An older model of that name is removed.
func (s *Store) Make(ctx context.Context, n Name, source string, layers []Layer) (*Manifest, error) {
	n = n.tagged()
	m := Manifest{Name: n.Full(), Source: source, Pulled: time.Now()}
	said := sha256.New()
	for i := range layers {
		l := &layers[i]
		if l.Data != nil {
			l.Size, l.Digest = int64(len(l.Data)), DigestOf(l.Data)
		} else if size, here := s.Size(l.Digest); here {
			l.Size = size
		} else {
			return nil, fmt.Errorf("%s (%s): %w: upload it first", l.Name, l.Digest, fs.ErrNotExist)
		}
		fmt.Fprintf(said, "%s %s\n", l.Digest, l.Name)
		m.Files = append(m.Files, l.File)
	}
	m.Revision = string(digestFrom([sha256.Size]byte(said.Sum(nil))))
	p, err := s.Begin(ctx, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for i := range layers {
		if err := p.bring(ctx, &layers[i]); err != nil {
			return nil, errors.Join(err, p.Abandon(context.WithoutCancel(ctx)))
		}
	}
	if err := p.Commit(ctx); err != nil {
		return nil, err
	}
	for i := range layers {
		_ = os.Remove(s.path(uploadsFolder, layers[i].Digest.file())) // if this fails, a sweep removes it in a day
	}
	return &p.manifest, nil
}

// bring puts a layer's file among the store's blobs.
func (p *Pull) bring(ctx context.Context, l *Layer) error {
	s := p.store
	switch {
	case s.has(&l.File):
		return nil
	case l.Data == nil:
		err := os.Link(s.path(uploadsFolder, l.Digest.file()), s.blob(l.Digest))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		return nil
	}
	part, err := p.Partial(ctx, l.File, nil)
	if err != nil || part == nil {
		return err
	}
	return part.Fill(l.Data)
}

// Fill writes a whole file from memory and closes it.
func (p *Partial) Fill(data []byte) error {
	defer p.Close()
	if err := p.Write(data, 0); err != nil {
		return err
	}
	for i := range p.Pieces() {
		if err := p.Done(i); err != nil {
			return err
		}
	}
	return p.Commit()
}

// mostText bounds the size of a file that Texts reads, in bytes.
const mostText = 4 << 20

// Paths returns where a model's files of a role lie, in the manifest's order.
func (s *Store) Paths(m *Manifest, role Role) (all []string, err error) {
	for _, f := range m.of(role) {
		path := s.blob(f.Digest)
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", f.Name, m.Name, err)
		}
		all = append(all, path)
	}
	return all, nil
}

// Texts returns the contents of a model's files of a role, in the manifest's order.
func (s *Store) Texts(m *Manifest, role Role) (all []string, err error) {
	return m.Texts(s.path(blobsFolder), role)
}

// Texts returns the contents of the files of a role from a folder of blobs, in the manifest's order.
func (m *Manifest) Texts(blobs string, role Role) (all []string, err error) {
	for _, f := range m.of(role) {
		file, _, err := safefile.Open(f.Digest.In(blobs))
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", f.Name, m.Name, err)
		}
		data, err := safefile.ReadAll(file, mostText)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", f.Name, m.Name, err)
		}
		all = append(all, strings.ToValidUTF8(string(data), "\uFFFD"))
	}
	return all, nil
}
