package requant

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// disk is an output file that grows.
type disk interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Layout of the journal, little-endian: magic, key of the job, and the offset up to which all is written. It occupies
// the beginning of an incomplete file. A complete file has its header there, which is never shorter than the journal.
const (
	journalMagic = "SLUICE\x00\x01"
	keyBytes     = sha256.Size
	journalBytes = len(journalMagic) + keyBytes + 8
)

func (j *Job) openDisk(path string) (disk, error) {
	if j.open != nil {
		return j.open(path)
	}
	f, err := safefile.Grow(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// identity hashes all that the bytes of the new file depend on. A source counts by its size and time of change, since
// hashing its content would read it twice.
func (w *writer) identity() (key [keyBytes]byte, err error) {
	h := sha256.New()
	number := func(n int64) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	h.Write(w.layout.Head)
	for i := range w.parts {
		s := w.job.Source.Part(i)
		number(s.Size)
		if s.Path == "" {
			h.Write(s.Data)
			continue
		}
		info, err := os.Stat(s.Path)
		if err != nil {
			return key, err
		}
		if info.Size() != s.Size {
			return key, fmt.Errorf("%s: has changed since it was opened", s.Path)
		}
		number(info.ModTime().UnixNano())
	}
	for _, name := range slices.Sorted(maps.Keys(w.job.Importance)) {
		number(int64(len(name)))
		h.Write([]byte(name))
		number(int64(len(w.job.Importance[name])))
		_ = binary.Write(h, binary.LittleEndian, w.job.Importance[name]) // a hash takes everything
	}
	return [keyBytes]byte(h.Sum(nil)), nil
}

// begin reads the state that an earlier run has left in the file, and writes the journal of this run.
func (w *writer) begin(path string) error {
	found := make([]byte, len(w.layout.Head))
	n, err := w.out.ReadAt(found, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	found = found[:n]
	if !w.ours(found) {
		return fmt.Errorf("%s: is not what an earlier run has left: move it away, or choose another name", path)
	}
	reached := w.left(found)
	if reached <= int64(len(w.layout.Head)) {
		reached = int64(len(w.layout.Head))
		if err := w.out.Truncate(0); err != nil {
			return err
		}
	}
	w.reached = w.skip(reached)
	return w.save(w.reached)
}

// ours reports whether the beginning of a file is a journal, or a header that was being written over one.
func (w *writer) ours(found []byte) bool {
	start, rest := found[:min(len(found), len(journalMagic))], min(len(found), journalBytes)
	return bytes.HasPrefix([]byte(journalMagic), start) ||
		bytes.HasPrefix(w.layout.Head, start) && bytes.HasPrefix(w.layout.Head[rest:], found[rest:])
}

// left returns the offset up to which the journal says that all is written; 0 if it is another job's.
func (w *writer) left(found []byte) int64 {
	if len(found) < journalBytes || !bytes.Equal(found[len(journalMagic):][:keyBytes], w.key[:]) {
		return 0
	}
	n := binary.LittleEndian.Uint64(found[journalBytes-8:])
	return int64(min(n, uint64(w.layout.Size)))
}

// skip moves the cursor past the pieces that end before reached and are present, and returns the end of the last one.
func (w *writer) skip(reached int64) int64 {
	at := int64(len(w.layout.Head))
	for {
		c := w.next
		p, ok := c.piece(w.layout)
		if !ok || p.end > reached || !w.has(p.end) {
			return at
		}
		w.next, at = c, p.end
	}
}

// has reports whether the file still has byte end-1: somebody may have truncated it.
func (w *writer) has(end int64) bool {
	n, _ := w.out.ReadAt(make([]byte, 1), end-1)
	return n == 1
}

// save syncs the data before the offset reached, then records that offset in the journal. If reached is the end of the
// header, there is no data to sync.
func (w *writer) save(reached int64) error {
	if reached > int64(len(w.layout.Head)) {
		if err := w.out.Sync(); err != nil {
			return err
		}
	}
	b := append([]byte(journalMagic), w.key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(reached))
	if _, err := w.out.WriteAt(b, 0); err != nil {
		return err
	}
	w.saved = reached
	return nil
}

// finish writes the header and thereby makes the file a model, unless the work failed. All other bytes are on disk
// before the first byte of the header is.
func (w *writer) finish(failed error) error {
	if failed != nil {
		_ = w.save(w.reached) // if this fails, the next run repeats a little more work
		return failed
	}
	if err := w.out.Truncate(w.layout.Size); err != nil {
		return err
	}
	head := w.layout.Head
	for _, from := range []int{journalBytes, 0} {
		if _, err := w.out.WriteAt(head[from:], int64(from)); err != nil {
			return err
		}
		if err := w.out.Sync(); err != nil {
			return err
		}
		head = head[:journalBytes]
	}
	return nil
}
