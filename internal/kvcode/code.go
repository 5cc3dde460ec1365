package kvcode

import (
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Code is a kind of codes for rotated rows: value i is Level(code i) times the scale of its part of the row.
type Code struct {
	Bits int  // of a code, at most 5
	Book bool // levels are those of a codebook, one scale a row; else they are evenly spaced, a scale for each Part
}

// Part is how many features share a scale where levels are evenly spaced.
const Part = 32

// Scales is how many scales, in half precision, a row of d features has.
func (c Code) Scales(d int) int {
	if c.Book {
		return 1
	}
	return (d + Part - 1) / Part
}

// Levels are the levels of codes for rows of d features, in units of a scale.
func (c Code) Levels(d int) (l [32]int8) {
	if c.Book {
		copy(l[:], wholeBook(d, c.Bits).levels[:])
		return l
	}
	for i := range 1 << c.Bits {
		l[i] = int8(i - 1<<(c.Bits-1))
	}
	return l
}

// Unit is how many levels of a book one is, in a rotated row of d features whose squares have the mean 1.
func (c Code) Unit(d int) float64 { return wholeBook(d, c.Bits).unit }

// Encode finds codes and scales of a rotated row.
func (c Code) Encode(codes []byte, scales []uint16, row []float32) {
	if c.Book {
		scales[0] = c.encodeRow(codes, row)
		return
	}
	for i := range scales {
		to := min((i+1)*Part, len(row))
		scales[i] = c.encodePart(codes[i*Part:to], row[i*Part:to])
	}
}

// encodeRow gives each value the nearest level, and returns a scale that restores the length of the row.
func (c Code) encodeRow(codes []byte, row []float32) uint16 {
	book, n := wholeBook(len(row), c.Bits), 1<<c.Bits
	square := 0.0
	for _, x := range row {
		square += float64(float64(x) * float64(x))
	}
	unit, kept := 0.0, 0
	if square > 0 {
		unit = book.unit / math.Sqrt(square/float64(len(row)))
	}
	for i, x := range row {
		at, y := 0, float64(x)*unit
		for step := n / 2; step > 0; step /= 2 {
			if y > book.cells[at+step-1] {
				at += step
			}
		}
		codes[i] = byte(at)
		kept += int(book.levels[at]) * int(book.levels[at])
	}
	return quant.F32ToF16(float32(math.Sqrt(square / float64(kept))))
}

// tries are numbers of levels by which encodePart shrinks the range that the largest value spans, one after the other.
var tries = [...]float32{0, 0.5, 1, 1.5, 2}

// encodePart tries some scales, of both signs as the levels are not symmetrical, and keeps the one of
// least error.
func (c Code) encodePart(codes []byte, row []float32) uint16 {
	low, high := float32(-int(1)<<(c.Bits-1)), float32(int(1)<<(c.Bits-1)-1)
	most := float32(0)
	for _, x := range row {
		most = max(most, x, -x)
	}
	best, scale := float32(-1), float32(0)
	for i := range 2 * len(tries) {
		inverse := (-low + 0.5 - tries[i/2]) / most
		if i%2 == 0 {
			inverse = -inverse
		}
		xc, cc := float32(0), float32(0)
		for _, x := range row {
			y := nearest(float32(x*inverse), low, high)
			xc += float32(x * y)
			cc += float32(y * y)
		}
		if cc > 0 && float32(xc*xc)/cc > best {
			best, scale = float32(xc*xc)/cc, xc/cc
		}
	}
	half := quant.F32ToF16(scale)
	inverse := 1 / quant.F16ToF32(half)
	square, kept := float32(0), float32(0)
	for i, x := range row {
		y := float32(0)
		if half&0x7fff != 0 {
			y = nearest(float32(x*inverse), low, high)
		}
		codes[i] = byte(int(y - low))
		square, kept = square+float32(x*x), kept+float32(y*y)
	}
	if kept == 0 {
		return half
	}
	length := float32(math.Sqrt(float64(square / kept)))
	return quant.F32ToF16(float32(math.Copysign(float64(length), float64(scale))))
}

// nearest is the level nearest to y, ties to even. Adding 1.5·2²³ leaves no bits behind the point.
func nearest(y, low, high float32) float32 {
	const whole = 3 << 22
	if y < low {
		return low
	}
	if y > high {
		return high
	}
	return float32(y+whole) - whole
}

// Decode turns codes and scales into values, still rotated.
func (c Code) Decode(row []float32, codes []byte, scales []uint16) {
	level, each := c.Levels(len(row)), Part
	if c.Book {
		each = len(row)
	}
	for i, half := range scales {
		scale := quant.F16ToF32(half)
		for j := i * each; j < min((i+1)*each, len(row)); j++ {
			row[j] = float32(level[codes[j]]) * scale
		}
	}
}

// Pack stores codes side by side, the first in the lowest bits.
func (c Code) Pack(to, codes []byte) {
	clear(to)
	for i, x := range codes {
		at := i * c.Bits
		to[at/8] |= x << (at % 8)
		if at%8+c.Bits > 8 {
			to[at/8+1] |= x >> (8 - at%8)
		}
	}
}

// Unpack reverses Pack.
func (c Code) Unpack(codes, from []byte) {
	for i := range codes {
		at := i * c.Bits
		x := uint(from[at/8]) >> (at % 8)
		if at%8+c.Bits > 8 {
			x |= uint(from[at/8+1]) << (8 - at%8)
		}
		codes[i] = byte(x & (1<<c.Bits - 1))
	}
}

// PackedBytes is what codes of so many features take.
func (c Code) PackedBytes(d int) int { return (d*c.Bits + 7) / 8 }
