package kvfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Key stands for all tokens up to the end of a block, and for whose they are.
type Key [32]byte

// Header says which block a file holds.
type Header struct {
	Kind   Key // of the shelf
	Key    Key
	Parent Key // of the block before
	Salt   uint64
	Class  int // cache class
	Bytes  int // of the block
	Tokens [backend.BlockSize]int32
	Before []int32 // all tokens before them, where no other file has them
}

// headerSize is the size of the header. The block follows it.
const headerSize = 512

// Places in the header. All numbers are little-endian.
const (
	atVersion = 8
	atClass   = 12
	atBytes   = 16
	atSalt    = 24
	atKind    = 32
	atKey     = 64
	atParent  = 96
	atTokens  = 128
	atBlock   = atTokens + 4*backend.BlockSize // checksum of the block
	atBefore  = atBlock + 4                    // number of tokens behind the block
	atHeader  = atBefore + 4                   // checksum of what stands before it; the rest is zero
)

const (
	magic   = "sluicekv"
	version = 1
	// mostBytes is more than any block has.
	mostBytes = 1 << 32
	// mostBefore is more tokens than a context has.
	mostBefore = 1 << 26
	// mostClasses is more than any model has.
	mostClasses = 1 << 10
)

// ErrBroken is wrapped by errors of files that hold no whole block of this format.
var ErrBroken = errors.New("it holds no whole block of this format")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// whole is the size of the file, each part of which has so many bytes more than what it holds.
func (h *Header) whole(over int) int64 {
	n := int64(headerSize+over) + int64(h.Bytes+over)
	if len(h.Before) > 0 {
		n += 4*int64(len(h.Before)) + int64(over)
	}
	return n
}

// tail is what stands behind the block.
func (h *Header) tail() (b []byte) {
	for _, id := range h.Before {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return b
}

// encode appends the header of a block with this checksum, of it and its tail.
func (h *Header) encode(to []byte, block uint32) []byte {
	b := append(to, make([]byte, headerSize)...)
	at := b[len(to):]
	copy(at, magic)
	binary.LittleEndian.PutUint32(at[atVersion:], version)
	binary.LittleEndian.PutUint32(at[atClass:], uint32(h.Class))
	binary.LittleEndian.PutUint64(at[atBytes:], uint64(h.Bytes))
	binary.LittleEndian.PutUint64(at[atSalt:], h.Salt)
	copy(at[atKind:], h.Kind[:])
	copy(at[atKey:], h.Key[:])
	copy(at[atParent:], h.Parent[:])
	for i, id := range h.Tokens {
		binary.LittleEndian.PutUint32(at[atTokens+4*i:], uint32(id))
	}
	binary.LittleEndian.PutUint32(at[atBlock:], block)
	binary.LittleEndian.PutUint32(at[atBefore:], uint32(len(h.Before)))
	binary.LittleEndian.PutUint32(at[atHeader:], crc32.Checksum(at[:atHeader], castagnoli))
	return b
}

// decode reads a header, the checksum of its block and tail, and how many tokens the tail has.
func (h *Header) decode(at []byte) (block uint32, before int, err error) {
	switch {
	case len(at) < headerSize:
		return 0, 0, fmt.Errorf("%d bytes of a header of %d: %w", len(at), headerSize, ErrBroken)
	case string(at[:len(magic)]) != magic:
		return 0, 0, fmt.Errorf("magic is %q, want %q: %w", at[:len(magic)], magic, ErrBroken)
	case binary.LittleEndian.Uint32(at[atVersion:]) != version:
		return 0, 0, fmt.Errorf("version is %d, want %d: %w", binary.LittleEndian.Uint32(at[atVersion:]), version, ErrBroken)
	case binary.LittleEndian.Uint32(at[atHeader:]) != crc32.Checksum(at[:atHeader], castagnoli):
		return 0, 0, fmt.Errorf("the header's checksum is wrong: %w", ErrBroken)
	case len(bytes.Trim(at[atHeader+4:headerSize], "\x00")) > 0:
		return 0, 0, fmt.Errorf("the header has more than this version knows: %w", ErrBroken)
	}
	n := binary.LittleEndian.Uint32(at[atBefore:])
	class, size := binary.LittleEndian.Uint32(at[atClass:]), binary.LittleEndian.Uint64(at[atBytes:])
	if class >= mostClasses || size == 0 || size > mostBytes || n > mostBefore || n%backend.BlockSize > 0 {
		return 0, 0, fmt.Errorf("%d bytes of cache class %d: %w", size, class, ErrBroken)
	}
	h.Class, h.Bytes, h.Salt = int(class), int(size), binary.LittleEndian.Uint64(at[atSalt:])
	copy(h.Kind[:], at[atKind:])
	copy(h.Key[:], at[atKey:])
	copy(h.Parent[:], at[atParent:])
	for i := range h.Tokens {
		h.Tokens[i] = int32(binary.LittleEndian.Uint32(at[atTokens+4*i:]))
	}
	return binary.LittleEndian.Uint32(at[atBlock:]), int(n), nil
}
