package vec

import (
	"encoding/binary"
	"math"

	"github.com/sluice-ai/sluice/internal/kvcode"
)

// Codes says how packed codes of few bits are decoded: code c is the level Levels[c] − Offset, or c − Offset without
// Levels. Products are of these levels and small integers, so their sums are exact in any order.
//
// Codes are packed in parts of 8 steps; a step has one code in each byte of each of 16 lanes. A part has Bits words for
// each lane: the first word of all lanes, then the second word of all lanes, and so on. In K a lane is a position, and
// the bytes of step j are features 4j to 4j+3 of the 32. In V a lane is a feature, and the bytes of step j are the
// positions 4j, 4j+2, 4j+1 and 4j+3 of the 32: the even bytes are neighbours, and so are the odd bytes, which products
// of 16-bit words need.
type Codes struct {
	Bits   int       // 2 to 5; without Levels 4 or 5
	Levels *[16]byte // at most 128
	Offset int
}

const (
	codesPart  = 32 // codes of a lane in a part
	codesStep  = 4  // codes of a lane in a step
	codesWord  = 4 * Lanes
	codesTiny  = 0x1p-100 // numbers whose largest is below this are taken for 0
	maxWeight  = 32767
	maxByte    = 127
	numberSize = 8 // bytes of a unit and a bias
)

// CodesMost is the largest number of features: up to it, float32 holds sums of products exactly.
const CodesMost = 1024

// CodesOf returns the packing of a kind of codes, for rows of so many features.
func CodesOf(code kvcode.Code, features int) Codes {
	c := Codes{Bits: code.Bits}
	levels := code.Levels(features)
	if !code.Book {
		c.Offset = -int(levels[0])
		return c
	}
	c.Levels, c.Offset = new([16]byte), kvcode.Most
	for i := range 1 << code.Bits {
		c.Levels[i] = byte(int(levels[i]) + kvcode.Most)
	}
	return c
}

// words is the number of words that a lane needs for the first steps of a part.
func (c *Codes) words(steps int) int {
	switch c.Bits {
	case 2:
		return (steps + 3) / 4
	case 3:
		return min((steps+1)/2, 3)
	case 4:
		return (steps + 1) / 2
	}
	return 1 + (steps+1)/2
}

// put stores the code of a step in a byte of a lane, whose words must be zero before; at is that byte of the first
// word. A fifth bit lies in word 0. With 3 bits, two steps share a word, and the last two steps take the bits that are
// left.
func (c *Codes) put(part []byte, at, step int, code byte) {
	switch {
	case c.Bits == 2:
		part[step/4*codesWord+at] |= code << (step % 4 * 2)
	case c.Bits == 3 && step < 6:
		part[step/2*codesWord+at] |= code << (step % 2 * 3)
	case c.Bits == 3:
		part[(step-6)*codesWord+at] |= code & 3 << 6
		part[2*codesWord+at] |= code >> 2 << step
	case c.Bits == 4:
		part[step/2*codesWord+at] |= code << (step % 2 * 4)
	default:
		part[(1+step/2)*codesWord+at] |= code & 15 << (step % 2 * 4)
		part[at] |= code >> 4 << step
	}
}

// get reads a code that put stored.
func (c *Codes) get(part []byte, at, step int) byte {
	switch {
	case c.Bits == 2:
		return part[step/4*codesWord+at] >> (step % 4 * 2) & 3
	case c.Bits == 3 && step < 6:
		return part[step/2*codesWord+at] >> (step % 2 * 3) & 7
	case c.Bits == 3:
		return part[(step-6)*codesWord+at]>>6 | part[2*codesWord+at]>>step&1<<2
	case c.Bits == 4:
		return part[step/2*codesWord+at] >> (step % 2 * 4) & 15
	}
	return part[(1+step/2)*codesWord+at]>>(step%2*4)&15 | part[at]>>step&1<<4
}

// scales is how many scales a row of so many features has.
func (c *Codes) scales(features int) int {
	if c.Levels != nil {
		return 1
	}
	return (features + codesPart - 1) / codesPart
}

// table is the levels as the assembly takes them.
func (c *Codes) table() (t [16]byte) {
	if c.Levels != nil {
		t = *c.Levels
	}
	return t
}

// CodedKeys is K of a block in codes: for every 16 positions, the parts of all features (the last part is cut to steps
// of 8 features); then, for every 16 positions, their scales in half precision, [scale][16].
type CodedKeys struct {
	Codes
	Features int
}

func (k *CodedKeys) parts() int  { return (k.Features + codesPart - 1) / codesPart }
func (k *CodedKeys) scales() int { return k.Codes.scales(k.Features) }

// chunk is the bytes of codes of 16 positions.
func (k *CodedKeys) chunk() int {
	whole, rest := k.Features/codesPart, k.Features%codesPart
	words := whole * k.Bits
	if rest > 0 {
		words += k.words((rest + 7) / 8 * 2)
	}
	return words * codesWord
}

// Bytes is the size of a block.
func (k *CodedKeys) Bytes() int { return Block/Lanes*k.chunk() + 2*Block*k.scales() }

// each visits all codes of a block, with the offset of the code's part, the byte in it, and the step.
func (k *CodedKeys) each(visit func(position, feature, part, at, step int)) {
	for position := range Block {
		chunk := position / Lanes * k.chunk()
		for feature := range k.Features {
			part, in := feature/codesPart, feature%codesPart
			visit(position, feature, chunk+part*k.Bits*codesWord, position%Lanes*4+in%codesStep, in/codesStep)
		}
	}
}

// scaleAt is the offset of a scale of a position.
func (k *CodedKeys) scaleAt(position, scale int) int {
	return Block/Lanes*k.chunk() + 2*((position/Lanes*k.scales()+scale)*Lanes+position%Lanes)
}

// Pack brings codes and scales of 64 rows into a block.
func (k *CodedKeys) Pack(block, codes []byte, scales []uint16) {
	clear(block[:k.Bytes()])
	k.each(func(position, feature, part, at, step int) {
		k.put(block[part:], at, step, codes[position*k.Features+feature])
	})
	for i, s := range scales {
		binary.LittleEndian.PutUint16(block[k.scaleAt(i/k.scales(), i%k.scales()):], s)
	}
}

// Unpack undoes Pack.
func (k *CodedKeys) Unpack(codes []byte, scales []uint16, block []byte) {
	k.each(func(position, feature, part, at, step int) {
		codes[position*k.Features+feature] = k.get(block[part:], at, step)
	})
	for i := range scales {
		scales[i] = binary.LittleEndian.Uint16(block[k.scaleAt(i/k.scales(), i%k.scales()):])
	}
}

// CodedValues is V of a block in codes: for every 16 features, the parts of the first and of the last 32 positions;
// then scales in half precision, [scale][64]; then for every scale of a row, as float32, the factor that maps the
// block's largest one to 32767, and the inverse of the factor.
type CodedValues struct {
	Codes
	Features int
}

func (v *CodedValues) chunks() int { return (v.Features + Lanes - 1) / Lanes }
func (v *CodedValues) scales() int { return v.Codes.scales(v.Features) }

// chunk is the bytes of codes of 16 features.
func (v *CodedValues) chunk() int { return Block / codesPart * v.Bits * codesWord }

// Bytes is the size of a block.
func (v *CodedValues) Bytes() int { return v.numberAt(v.scales()) }

// numberAt is the offset of the factor of a scale.
func (v *CodedValues) numberAt(scale int) int {
	return v.chunks()*v.chunk() + 2*Block*v.scales() + numberSize*scale
}

// byteOf is the byte of a step for a position, by the position's last two bits.
var byteOf = [codesStep]int{0, 2, 1, 3}

func (v *CodedValues) each(visit func(position, feature, part, at, step int)) {
	for position := range Block {
		half, in := position/codesPart, position%codesPart
		for feature := range v.Features {
			part := feature/Lanes*v.chunk() + half*v.Bits*codesWord
			visit(position, feature, part, feature%Lanes*4+byteOf[in%codesStep], in/codesStep)
		}
	}
}

func (v *CodedValues) scaleAt(position, scale int) int {
	return v.chunks()*v.chunk() + 2*(scale*Block+position)
}

// Pack brings codes and scales of 64 rows into a block.
func (v *CodedValues) Pack(block, codes []byte, scales []uint16) {
	clear(block[:v.Bytes()])
	v.each(func(position, feature, part, at, step int) {
		v.put(block[part:], at, step, codes[position*v.Features+feature])
	})
	for i, s := range scales {
		binary.LittleEndian.PutUint16(block[v.scaleAt(i/v.scales(), i%v.scales()):], s)
	}
	for i := range v.scales() {
		most := float32(0)
		for position := range Block {
			x := halfAt(block[v.scaleAt(position, i):])
			most = max(most, x, -x)
		}
		factor, unit := maxWeight/most, most/maxWeight
		switch {
		case most == 0:
			factor = 0
		case !(most <= math.MaxFloat32): // it is worth nothing, and seen to be
			factor, unit = 0, float32(math.NaN())
		}
		binary.LittleEndian.PutUint32(block[v.numberAt(i):], math.Float32bits(factor))
		binary.LittleEndian.PutUint32(block[v.numberAt(i)+4:], math.Float32bits(unit))
	}
}

// Unpack undoes Pack.
func (v *CodedValues) Unpack(codes []byte, scales []uint16, block []byte) {
	v.each(func(position, feature, part, at, step int) {
		codes[position*v.Features+feature] = v.get(block[part:], at, step)
	})
	for i := range scales {
		scales[i] = binary.LittleEndian.Uint16(block[v.scaleAt(i/v.scales(), i%v.scales()):])
	}
}
