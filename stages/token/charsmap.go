package token

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// charsMap replaces character sequences by SentencePiece's precompiled_charsmap: a double-array trie (Yata et al.,
// darts-clone) that leads to offsets in a list of replacements. The file is not trusted; each step is checked.
type charsMap struct {
	units        []uint32
	replacements string // each ended by a zero byte
}

const charsMapKey = prefix + "precompiled_charsmap"

// longestSequence bounds a walk in bytes, since a damaged table may lead in circles. Real sequences have some 20
// bytes.
const longestSequence = 256

// errCharsMap is the error of a walk in a damaged map.
var errCharsMap = errors.New(charsMapKey + ": a transition leads out of the table: the file is damaged")

func readCharsMap(m *meta.Map) (charsMap, error) {
	data, err := m.Bytes(charsMapKey)
	if errors.Is(err, meta.ErrMissing) || err == nil && len(data) == 0 {
		return charsMap{}, nil
	}
	if err != nil {
		return charsMap{}, err
	}
	if len(data) < 4 {
		return charsMap{}, fmt.Errorf("%s: has %d bytes, want at least 4", charsMapKey, len(data))
	}
	size := uint64(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if size%4 != 0 || size > uint64(len(data)) {
		return charsMap{}, fmt.Errorf("%s: says that its table has %d bytes, want a multiple of 4, at most %d", charsMapKey,
			size, len(data))
	}
	c := charsMap{units: make([]uint32, size/4), replacements: string(data[size:])}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return c, nil
}

// longest returns the longest sequence at the start of text that has a replacement, by its length n, and the
// replacement. n is 0 if there is none.
func (c *charsMap) longest(text string) (replacement string, n int, err error) {
	if len(c.units) == 0 {
		return "", 0, nil
	}
	at := offset(c.units[0])
	for i := 0; i < min(len(text), longestSequence) && text[i] != 0; i++ {
		at ^= uint32(text[i])
		if at >= uint32(len(c.units)) {
			return "", 0, errCharsMap
		}
		unit := c.units[at]
		if unit&(1<<31|0xFF) != uint32(text[i]) {
			break
		}
		at ^= offset(unit)
		if unit>>8&1 == 0 { // no sequence ends here
			continue
		}
		if at >= uint32(len(c.units)) {
			return "", 0, errCharsMap
		}
		value := c.units[at] &^ (1 << 31)
		if value >= uint32(len(c.replacements)) {
			return "", 0, errCharsMap
		}
		end := strings.IndexByte(c.replacements[value:], 0)
		if end < 0 {
			return "", 0, errCharsMap
		}
		replacement, n = c.replacements[value:][:end], i+1
	}
	return replacement, n, nil
}

// offset returns the distance from a node to its children; its bit 9 says whether the distance counts in 256s.
func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
