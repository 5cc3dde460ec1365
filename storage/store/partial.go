package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// Partial is a file of a pull that is not complete. It belongs to one process, and one of its goroutines, at a time;
// several goroutines may call Write at once.
type Partial struct {
	store *Store
	of    File
	path  string
	file  *os.File // locked

	mu     sync.Mutex // guards have, and orders the lines of list
	have   *pieces
	list   *os.File // file that lists the pieces that have arrived
	sumMu  sync.Mutex
	summed int       // number of pieces, from the first on, that sum covers
	sum    hash.Hash // hash of their bytes; it and summed are guarded by sumMu
}

// WrongContent is the error of a complete file with another digest than expected. The file has been removed.
type WrongContent struct {
	File  File
	Found Digest
}

func (w *WrongContent) Error() string {
	return fmt.Sprintf("%s: what came has the checksum %s, want %s: pull it again, or from elsewhere",
		w.File.Name, w.Found, w.File.Digest)
}

// Partial opens a file to be filled; it returns nil if the store has the file already. While another pull fills it,
// Partial waits, so that its bytes are fetched once, and calls waiting, if that is not nil, now and then.
func (p *Pull) Partial(ctx context.Context, f File, waiting func()) (*Partial, error) {
	path := p.store.path(partsFolder, f.Digest.file())
	for {
		if p.store.has(&f) {
			return nil, nil
		}
		file, err := hold(ctx, path, 100*time.Millisecond, waiting)
		if err != nil {
			return nil, err
		}
		if !isAt(file, path) { // the pull that held the lock has completed the file, or removed it
			file.Close()
			continue
		}
		if p.store.has(&f) { // completed before hold opened path, so that hold created an empty file
			return nil, errors.Join(removed(os.Remove(path)), file.Close())
		}
		part := &Partial{store: p.store, of: f, path: path, file: file, have: newPieces(f.Size), sum: sha256.New()}
		if err := part.resume(); err != nil {
			part.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return part, nil
	}
}

func isAt(f *os.File, path string) bool {
	info, err := f.Stat()
	there, err2 := os.Lstat(path)
	return err == nil && err2 == nil && os.SameFile(info, there)
}

// piecesOf reads the list of the pieces of a file that have come.
func (s *Store) piecesOf(f *File) *pieces {
	have := newPieces(f.Size)
	if file, _, err := safefile.Open(s.path(partsFolder, f.Digest.file()+piecesSuffix)); err == nil {
		defer file.Close()
		if list, err := safefile.ReadAll(file, mostList); err == nil {
			have.read(list)
		}
	}
	return have
}

// resume reads the state that an earlier pull has left. A damaged list is written again.
func (p *Partial) resume() error {
	name := p.path + piecesSuffix
	if info, err := p.file.Stat(); err != nil {
		return err
	} else if info.Size() == p.of.Size {
		p.have = p.store.piecesOf(&p.of)
	} else if err := p.file.Truncate(p.of.Size); err != nil { // sparse: its blocks come with its bytes
		return err
	}
	text := p.have.head()
	for i, done := range p.have.done {
		if done {
			text += fmt.Sprintf("%d\n", i)
		}
	}
	if err := safefile.Write(name, []byte(text), 0o644, true); err != nil {
		return err
	}
	var err error
	p.list, err = safefile.Append(name)
	return err
}

// Pieces returns the number of pieces.
func (p *Partial) Pieces() int { return len(p.have.done) }

// At returns the range of piece i in bytes: from from up to, but without, to.
func (p *Partial) At(i int) (from, to int64) { return p.have.at(i) }

// Has reports whether piece i has come.
func (p *Partial) Has(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.done[i]
}

// Write writes data at an offset.
func (p *Partial) Write(data []byte, offset int64) error {
	if offset < 0 || int64(len(data)) > p.of.Size-offset {
		return fmt.Errorf("%s: %d bytes at %d are past the end, %d", p.of.Name, len(data), offset, p.of.Size)
	}
	_, err := p.file.WriteAt(data, offset)
	return err
}

// Done records that all bytes of piece i were written. It syncs them first, so that a later pull can rely on them.
func (p *Partial) Done(i int) error {
	if err := p.file.Sync(); err != nil {
		return err
	}
	if err := p.enlist(i); err != nil {
		return err
	}
	if !p.sumMu.TryLock() { // another goroutine is in addUp
		return nil
	}
	defer p.sumMu.Unlock()
	return p.addUp()
}

func (p *Partial) enlist(i int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.have.done[i] {
		return nil
	}
	p.have.done[i] = true
	_, err := fmt.Fprintf(p.list, "%d\n", i)
	return err
}

// addUp continues the checksum up to the first missing piece, while the bytes are still in the page cache.
func (p *Partial) addUp() error {
	for p.summed < p.Pieces() && p.Has(p.summed) {
		from, to := p.At(p.summed)
		if n, err := io.Copy(p.sum, io.NewSectionReader(p.file, from, to-from)); err != nil || n != to-from {
			return fmt.Errorf("%s: %d bytes of piece %d can be read, want %d: %w", p.path, n, p.summed, to-from, err)
		}
		p.summed++
	}
	return nil
}

// Commit checks the digest, makes the file a blob of the store and closes it. If the digest is wrong, the file is
// removed and the error is a WrongContent.
func (p *Partial) Commit() error {
	defer p.Close()
	p.sumMu.Lock()
	defer p.sumMu.Unlock()
	if err := p.addUp(); err != nil {
		return err
	}
	if p.summed < p.Pieces() {
		return fmt.Errorf("%s: piece %d of %d is missing", p.of.Name, p.summed, p.Pieces())
	}
	found := digestFrom([sha256.Size]byte(p.sum.Sum(nil)))
	if found != p.of.Digest {
		return errors.Join(&WrongContent{p.of, found}, p.Remove())
	}
	if err := errors.Join(p.file.Chmod(0o444), p.file.Sync()); err != nil {
		return err
	}
	if err := safefile.Publish(p.path, p.store.blob(p.of.Digest), true); err != nil {
		return fmt.Errorf("%s: %w", p.store.blob(p.of.Digest), err)
	}
	return removed(os.Remove(p.path + piecesSuffix))
}

// Remove removes the file and its list of pieces. Close must still be called.
func (p *Partial) Remove() error {
	return errors.Join(removed(os.Remove(p.path+piecesSuffix)), removed(os.Remove(p.path)))
}

// removed returns nil for the error of a file that was not there.
func removed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close closes the file. Its pieces are kept for a later pull.
func (p *Partial) Close() error {
	if p.list != nil {
		return errors.Join(p.list.Close(), p.file.Close())
	}
	return p.file.Close()
}
