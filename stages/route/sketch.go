package route

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Key stands for a prompt up to the end of a block, and for its salt. Keys are chained: equal ones have equal texts
// before them.
type Key uint64

// KeyOf shortens a key of the cache (stages/kv). Two texts of a short key cost a prompt that is read where it was
// hoped to be known; what is computed is decided by whole keys.
func KeyOf(whole [32]byte) Key { return Key(binary.LittleEndian.Uint64(whole[:])) }

// A sketch has 10 bits for each key, of which 7 are set: of a hundred keys that it was not made of, it has one.
const (
	bitsOfKey   = 10
	setOfKey    = 7
	leastSketch = 8 // bytes

	// MostSketch is the most bytes of a sketch.
	MostSketch = 64 << 10
	// MostKeys is how many keys a sketch can be made of.
	MostKeys = 8 * MostSketch / bitsOfKey
)

// Sketch tells which keys it was made of, and takes a few others for them. The zero value has none.
type Sketch struct{ bits []byte } // a power of two of them

// SketchOf makes a sketch of keys. Of more than MostKeys it has the first ones, so that shorter prefixes, which more
// prompts share, should come first.
func SketchOf(keys []Key) Sketch {
	keys = keys[:min(len(keys), MostKeys)]
	if len(keys) == 0 {
		return Sketch{}
	}
	want := max((len(keys)*bitsOfKey+7)/8, leastSketch)
	s := Sketch{make([]byte, 1<<bits.Len(uint(want-1)))}
	for _, k := range keys {
		s.places(k, func(i uint32) bool {
			s.bits[i/8] |= 1 << (i % 8)
			return true
		})
	}
	return s
}

// places calls f with the bits of a key until f returns false, and returns what f did last.
func (s Sketch) places(k Key, f func(i uint32) bool) bool {
	mask := uint32(8*len(s.bits) - 1)
	at, step := uint32(k), uint32(k>>32)|1
	for range setOfKey {
		if !f(at & mask) {
			return false
		}
		at += step
	}
	return true
}

// Has says whether the sketch was made of a key, or looks like it.
func (s Sketch) Has(k Key) bool {
	return len(s.bits) > 0 && s.places(k, func(i uint32) bool { return s.bits[i/8]&(1<<(i%8)) != 0 })
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (s Sketch) MarshalBinary() ([]byte, error) { return s.bits, nil }

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It keeps no part of data.
func (s *Sketch) UnmarshalBinary(data []byte) error {
	n := len(data)
	if n != 0 && (n < leastSketch || n > MostSketch || n&(n-1) != 0) {
		return fmt.Errorf("a sketch of prefixes has %d bytes: want a power of two from %d to %d, or none: "+
			"is it of another version of the program?", n, leastSketch, MostSketch)
	}
	s.bits = append([]byte(nil), data...)
	return nil
}
