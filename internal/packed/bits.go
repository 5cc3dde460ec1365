package packed

import (
	"encoding/binary"
	"fmt"

	"github.com/sluice-ai/sluice/internal/element"
)

const wordBits = 32 // of the words that codes are packed into

// code returns the code of some bits, at most 8, from bit number at on of a stream whose lowest bits come first. Words
// of 32 bits are stored that way, whatever codes they hold.
func code(data []byte, at int64, bits uint) uint32 {
	i := at >> 3
	v := uint32(data[i])
	if i+1 < int64(len(data)) {
		v |= uint32(data[i+1]) << 8
	}
	return v >> (at & 7) & (1<<bits - 1)
}

// columnOf are the codes of a stream that runs down one column of words. Its words lie far apart: each is read once
// while codes are asked for in order.
type columnOf struct {
	data            []byte
	column, columns int64
	bits            uint

	row  int64  // of the word that was read, from 1 on; 0: none
	word uint64 // and the one below it, if codes may reach into that
}

// code is the code that begins at a bit of the stream.
func (c *columnOf) code(at int64) uint32 {
	if row := at / wordBits; c.row != row+1 {
		c.row, c.word = row+1, c.read(row)
		if below := row + 1; wordBits%c.bits != 0 && 4*(below*c.columns+c.column) < int64(len(c.data)) {
			c.word |= c.read(below) << wordBits
		}
	}
	return uint32(c.word>>(at%wordBits)) & (1<<c.bits - 1)
}

func (c *columnOf) read(row int64) uint64 {
	return uint64(binary.LittleEndian.Uint32(c.data[4*(row*c.columns+c.column):]))
}

// words is how many words so many codes take.
func words(n int, bits int) int { return (n*bits + wordBits - 1) / wordBits }

// codesIn is how many codes fill so many words, without a bit left.
func codesIn(n, bits int) (int, error) {
	if n*wordBits%bits != 0 {
		return 0, fmt.Errorf("%d words do not hold a whole number of codes of %d bits", n, bits)
	}
	return n * wordBits / bits, nil
}

// scaleTypes are the types of scales.
func scaleTypes() []element.Type {
	return []element.Type{element.F32, element.F16, element.BF16, element.F8E8M0}
}

// scale is number i of a tensor of scales.
func scale(t element.Type, data []byte, i int64) float32 {
	if t == element.F8E8M0 {
		return powerOfTwo(data[i])
	}
	size := int64(t.Size())
	return t.Widen(data[i*size:][:size])
}

// grouping is the groups that columns belong to, where they are not one behind the other.
type grouping struct {
	data []byte // an I32 for each column; nil: one group behind the other
	size int64  // columns of a group
}

// groupingOf checks a tensor of group numbers. Groups that were never numbered are -1.
func groupingOf(data []byte, groups, size int64) (grouping, error) {
	for i := 0; i < len(data); i += 4 {
		switch g := int32(binary.LittleEndian.Uint32(data[i:])); {
		case g == -1:
			return grouping{nil, size}, nil
		case g < 0 || int64(g) >= groups:
			return grouping{}, fmt.Errorf("column %d belongs to group %d, and there are %d: the file is damaged", i/4, g, groups)
		}
	}
	return grouping{data, size}, nil
}

// split calls use for each part of a row that lies in one group.
func (o grouping) split(dst []float32, column int64, use func(dst []float32, column, group int64)) {
	if o.data == nil {
		runs(dst, column, o.size, use)
		return
	}
	group := func(c int64) int64 { return int64(binary.LittleEndian.Uint32(o.data[4*c:])) }
	for len(dst) > 0 {
		g, n := group(column), int64(1)
		for n < int64(len(dst)) && group(column+n) == g {
			n++
		}
		use(dst[:n], column, g)
		dst, column = dst[n:], column+n
	}
}
