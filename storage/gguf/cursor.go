package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// cursor walks the bytes of a file. Every read is checked against the remaining bytes, so that a count or length in
// the file is believed only as far as the file has bytes for it.
type cursor struct {
	data []byte
	at   int
}

func (c *cursor) remain() int { return len(c.data) - c.at }

// take returns the next n bytes, which alias the file.
func (c *cursor) take(n int) ([]byte, error) {
	if n > c.remain() {
		return nil, c.short(uint64(n))
	}
	b := c.data[c.at : c.at+n]
	c.at += n
	return b, nil
}

func (c *cursor) short(n uint64) error {
	return fmt.Errorf("needs %d bytes at byte %d, the file has %d left: is the download complete?",
		n, c.at, c.remain())
}

func (c *cursor) u32() (uint32, error) {
	b, err := c.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (c *cursor) u64() (uint64, error) {
	b, err := c.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// count reads the number of items that follow, each of at least size bytes.
func (c *cursor) count(what string, size int) (int, error) {
	at := c.at
	n, err := c.u64()
	if err != nil {
		return 0, err
	}
	if most := c.remain() / size; n > uint64(most) {
		return 0, fmt.Errorf("%s at byte %d is %d, the %d bytes after it hold at most %d: "+
			"the file is damaged or incomplete, download it again", what, at, n, c.remain(), most)
	}
	return int(n), nil
}

// bytes reads a length and that many bytes, which alias the file.
func (c *cursor) bytes() ([]byte, error) {
	n, err := c.u64()
	if err != nil {
		return nil, err
	}
	if n > math.MaxInt || int(n) > c.remain() {
		return nil, fmt.Errorf("text: %w", c.short(n))
	}
	return c.take(int(n))
}
