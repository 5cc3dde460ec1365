package kvfiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/storage/sealed"
)

// Shelf is the part of a folder whose blocks were computed and laid out alike.
type Shelf struct {
	of   *Folder
	kind Key
	name string
}

// Found is a block that a shelf has.
type Found struct {
	Header
	Used time.Time // when it was written or read last
}

// Shelf returns the shelf of what a text describes: all that a block's bytes depend on beside its tokens. It is open
// until Close: nothing of it is removed for others.
func (f *Folder) Shelf(kind string) *Shelf {
	sum := sha256.Sum256([]byte(kind))
	if f.key != nil {
		sum = f.key.Name(sum[:])
	}
	s := &Shelf{of: f, kind: sum, name: hex.EncodeToString(sum[:16])}
	f.mu.Lock()
	f.open[s.name]++
	f.others = slices.DeleteFunc(f.others, func(x file) bool { return x.shelf == s.name })
	f.mu.Unlock()
	return s
}

// Close gives the shelf up: its blocks stay until their room is wanted.
func (s *Shelf) Close(now time.Time) {
	f := s.of
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[s.name]--; f.open[s.name] > 0 {
		return
	}
	delete(f.open, s.name)
	f.others = append(f.others, f.list(s.name, now)...)
	slices.SortFunc(f.others, older)
}

// Path is the folder of the shelf's files.
func (s *Shelf) Path() string { return filepath.Join(s.of.path, s.name) }

// path is the file of a block. Where it is encrypted, its name does not tell its tokens' digest either.
func (s *Shelf) path(key *Key, class int) string {
	name := *key
	if s.of.key != nil {
		name = Key(s.of.key.Name(key[:]))
	}
	return filepath.Join(s.Path(), fmt.Sprintf("%s-%d", hex.EncodeToString(name[:16]), class))
}

// Parts of a file that are encrypted one by one.
const (
	headPart  = "header"
	blockPart = "block"
	tailPart  = "tail"
)

// bound says which part of which file of which shelf a part is.
func (s *Shelf) bound(part, path string) string {
	return "kv " + part + " " + hex.EncodeToString(s.kind[:]) + " " + filepath.Base(path)
}

// open decrypts a part of a file.
func (s *Shelf) open(data []byte, part, path string) ([]byte, error) {
	plain, err := s.of.key.Open(data, s.bound(part, path))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrBroken)
	}
	return plain, nil
}

// readPart reads a part of so many bytes and decrypts it; into is its memory if that is large enough.
func (s *Shelf) readPart(f io.Reader, bytes int, into []byte, part, path string) ([]byte, error) {
	bytes += s.of.key.Over()
	if len(into) < bytes {
		into = make([]byte, bytes)
	}
	if _, err := io.ReadFull(f, into[:bytes]); err != nil {
		return nil, short(err)
	}
	return s.open(into[:bytes], part, path)
}

// Scan goes over the blocks that are there, by their headers, in any order. Files that hold none are removed if they
// have a block's name, and left alone if not.
func (s *Shelf) Scan(now time.Time) iter.Seq[Found] {
	return func(yield func(Found) bool) {
		var found [scannedTogether]Found
		var there [scannedTogether]bool
		for list := range slices.Chunk(s.of.list(s.name, now), scannedTogether) {
			var readers sync.WaitGroup
			for at := range min(len(list), scannedAtOnce) {
				readers.Go(func() {
					buf := make([]byte, headerSize+sealed.Overhead)
					for i := at; i < len(list); i += scannedAtOnce {
						there[i] = s.find(list[i], &found[i], buf)
					}
				})
			}
			readers.Wait()
			for i := range list {
				if there[i] && !yield(found[i]) {
					return
				}
			}
		}
	}
}

const (
	// scannedAtOnce is how many files are looked into at a time: each waits for the drive on its own.
	scannedAtOnce = 8
	// scannedTogether is how many are before what they hold is told: a folder may have more than memory is wanted for.
	scannedTogether = 512
)

// find says whether a file holds a block, and which. One that holds none is removed.
func (s *Shelf) find(x file, found *Found, buf []byte) bool {
	path := filepath.Join(s.Path(), x.name)
	*found = Found{Used: x.used}
	err := s.head(path, &found.Header, x.bytes, buf)
	switch {
	case err == nil && x.bytes == found.whole(s.of.key.Over()) && s.path(&found.Key, found.Class) == path:
		return true
	case err == nil, errors.Is(err, ErrBroken):
		s.remove(path)
	}
	return false
}

// head reads the header and the tail of a file of this size. Checksums of keys tell whether the tail is sound.
func (s *Shelf) head(path string, h *Header, size int64, buf []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return bare(err)
	}
	defer f.Close()
	_, n, err := s.readHead(f, h, buf, path)
	if err != nil || n == 0 {
		return err
	}
	over := int64(s.of.key.Over())
	at := int64(headerSize+h.Bytes) + 2*over
	if size != at+4*int64(n)+over {
		return fmt.Errorf("the file has %d bytes: %w", size, ErrBroken)
	}
	tail, err := s.readPart(io.NewSectionReader(f, at, size-at), 4*n, nil, tailPart, path)
	if err != nil {
		return err
	}
	h.Before = make([]int32, n)
	for i := range h.Before {
		h.Before[i] = int32(binary.LittleEndian.Uint32(tail[4*i:]))
	}
	return nil
}

// readHead reads a header; see decode.
func (s *Shelf) readHead(f io.Reader, h *Header, buf []byte, path string) (block uint32, before int, err error) {
	if buf, err = s.readPart(f, headerSize, buf, headPart, path); err != nil {
		return 0, 0, err
	}
	if block, before, err = h.decode(buf); err != nil {
		return 0, 0, err
	}
	if h.Kind != s.kind {
		return 0, 0, fmt.Errorf("it is of another model: %w", ErrBroken)
	}
	return block, before, nil
}

// short tells a file that ends too early from one that cannot be read.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is too short: %w", ErrBroken)
	}
	return bare(err)
}

// Write keeps a block. The header's kind and size are filled in. A block that is there already stays as it is.
func (s *Shelf) Write(h Header, block []byte) (err error) {
	h.Kind, h.Bytes = s.kind, len(block)
	path, whole, tail := s.path(&h.Key, h.Class), h.whole(s.of.key.Over()), h.tail()
	had := int64(0)
	if info, err := os.Stat(path); err == nil {
		if had = info.Size(); had == whole {
			return nil // equal keys have equal blocks; who reads it sees whether it is sound
		}
	}
	if err := s.of.reserve(whole - had); err != nil {
		return err
	}
	defer func() {
		if s.of.settle(whole - had); err != nil {
			s.of.giveBack(whole - had)
		}
	}()
	if err := os.MkdirAll(s.Path(), private); err != nil {
		return bare(err)
	}
	f, err := os.CreateTemp(s.Path(), beside+"*") // of mode 0600
	if err != nil {
		return bare(err)
	}
	sum := crc32.Update(crc32.Checksum(block, castagnoli), castagnoli, tail)
	err = s.writeTo(f, path, h.encode(make([]byte, 0, headerSize), sum), block, tail)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
		return bare(err)
	}
	return nil
}

// writeTo writes the parts of a file.
func (s *Shelf) writeTo(f io.Writer, path string, head, block, tail []byte) error {
	for i, name := range []string{headPart, blockPart, tailPart} {
		part := [][]byte{head, block, tail}[i]
		if len(part) == 0 {
			continue
		}
		if s.of.key != nil {
			part = s.of.key.Seal(make([]byte, 0, len(part)+sealed.Overhead), part, s.bound(name, path))
		}
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Read reads a block to memory in parts, whose size must be the block's, and notes that it was used. A file that does
// not hold it is removed; the parts hold anything then.
func (s *Shelf) Read(key Key, class int, parts [][]byte, now time.Time) error {
	path := s.path(&key, class)
	err := s.read(path, key, class, parts)
	switch {
	case errors.Is(err, ErrBroken):
		s.remove(path)
	case errors.Is(err, fs.ErrNotExist):
		s.of.missed()
	}
	if err == nil {
		_ = os.Chtimes(path, now, now) // it only orders files
	}
	return err
}

func (s *Shelf) read(path string, key Key, class int, parts [][]byte) error {
	f, err := os.Open(path)
	if err != nil {
		return bare(err)
	}
	defer f.Close()
	return s.readFrom(f, key, class, parts)
}

func (s *Shelf) readFrom(f io.Reader, key Key, class int, parts [][]byte) error {
	var h Header
	path := s.path(&key, class)
	sum, before, err := s.readHead(f, &h, make([]byte, headerSize+sealed.Overhead), path)
	if err != nil {
		return err
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if h.Key != key || h.Class != class || h.Bytes != size {
		return fmt.Errorf("it has %d bytes of another block: %w", h.Bytes, ErrBroken)
	}
	is, err := s.readBlock(f, size, parts, path)
	if err != nil {
		return err
	}
	if before > 0 {
		before = 4*before + s.of.key.Over()
	}
	tail, err := io.ReadAll(io.LimitReader(f, int64(before)+1))
	if err != nil {
		return bare(err)
	}
	if len(tail) != before {
		return fmt.Errorf("it has %d bytes behind the block, not %d: %w", len(tail), before, ErrBroken)
	}
	if before > 0 {
		if tail, err = s.open(tail, tailPart, path); err != nil {
			return err
		}
	}
	if crc32.Update(is, castagnoli, tail) != sum {
		return fmt.Errorf("the block's checksum is wrong: %w", ErrBroken)
	}
	return nil
}

// readBlock reads a block of so many bytes to its parts, and returns its checksum. What is not encrypted goes there
// straight, and is summed while it is in the processor's caches.
func (s *Shelf) readBlock(f io.Reader, size int, parts [][]byte, path string) (sum uint32, err error) {
	if s.of.key != nil {
		plain, err := s.readPart(f, size, nil, blockPart, path)
		if err != nil {
			return 0, err
		}
		f = bytes.NewReader(plain)
	}
	for _, part := range parts {
		if _, err := io.ReadFull(f, part); err != nil {
			return 0, short(err)
		}
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum, nil
}

// Remove drops a block, if it is there.
func (s *Shelf) Remove(key Key, class int) { s.remove(s.path(&key, class)) }

func (s *Shelf) remove(path string) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.of.missed()
	case err == nil && os.Remove(path) == nil:
		s.of.giveBack(info.Size())
	}
}
