package uring

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/source"
)

// Sums holds checksums of bytes that were read from files, to detect that a later read of the same place returns other
// bytes: because a drive fails silently, or the file was written to. A drive errs by whole blocks, so one line of each
// block is summed, and one more at the start of a read that begins within a block: a check costs less than a
// thousandth of the read. Sums are safe for concurrent use.
type Sums struct {
	mu    sync.Mutex
	files map[string][]byte // by path: two bytes for each Block, both zero if it was not read yet; outside the heap
	heads map[head][2]byte  // checksums of the first line of reads that begin within a block
	table *crc32.Table
}

// head identifies a read by its file, offset and length in bytes.
type head struct {
	path   string
	offset int64
	bytes  int
}

// line is the number of bytes of a block that are summed: a cache line.
const line = 64

// NewSums makes empty Sums.
func NewSums() *Sums {
	return &Sums{files: map[string][]byte{}, heads: map[head][2]byte{}, table: crc32.MakeTable(crc32.Castagnoli)}
}

// ErrBytes is the error of a place in a file that gave other bytes than before.
var ErrBytes = errors.New("they are not those that were read before: the drive fails, or the file was written to: " +
	"check the drive, restore the file and start again")

// Check compares data, which was read from a source at an offset, with the sums of earlier reads of that place, and
// records the sums of blocks that are read for the first time. It fails with ErrBytes if they differ. Sources in
// memory are not checked.
func (s *Sums) Check(from *source.Source, offset int64, data []byte) error {
	if from.Path == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := s.of(from)
	if err != nil {
		return err
	}
	if HeadOf(offset) != 0 {
		h := head{from.Path, offset, min(line, len(data))}
		sum := s.sum(data[:h.bytes])
		if was, ok := s.heads[h]; ok && was != sum {
			return differs(from, offset)
		}
		s.heads[h] = sum
	}
	first := (offset + Block - 1) &^ (Block - 1)
	for at := first; at+line <= offset+int64(len(data)); at += Block {
		was := (*[2]byte)(known[at/Block*2:])
		switch sum := s.sum(data[at-offset:][:line]); {
		case *was == [2]byte{}:
			*was = sum
		case *was != sum:
			return differs(from, at)
		}
	}
	return nil
}

// sum returns the checksum of a line; it is never zero.
func (s *Sums) sum(line []byte) [2]byte {
	sum := crc32.Checksum(line, s.table)
	return [2]byte{byte(sum) | 1, byte(sum >> 8)}
}

func differs(from *source.Source, at int64) error {
	return fmt.Errorf("%s: bytes from %d on: %w", from.Name, at, ErrBytes)
}

// of returns the sums of a file.
func (s *Sums) of(from *source.Source) ([]byte, error) {
	known, ok := s.files[from.Path]
	if !ok {
		var err error
		if known, err = mem.Alloc((from.Size/Block + 1) * 2); err != nil {
			return nil, err
		}
		s.files[from.Path] = known
	}
	return known, nil
}

// Forget drops the sums of files that are not read any more.
func (s *Sums) Forget(paths ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, path := range paths {
		errs = append(errs, mem.Free(s.files[path]))
		delete(s.files, path)
	}
	maps.DeleteFunc(s.heads, func(h head, _ [2]byte) bool { return slices.Contains(paths, h.path) })
	return errors.Join(errs...)
}

// Close drops all sums.
func (s *Sums) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, known := range s.files {
		errs = append(errs, mem.Free(known))
	}
	clear(s.files)
	clear(s.heads)
	return errors.Join(errs...)
}
