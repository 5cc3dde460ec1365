package backend

import (
	"encoding/binary"
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Float32 keeps values as they are: 64 rows, one after the other.
type Float32 struct{}

// Bytes implements Form.
func (Float32) Bytes(features int) int { return 4 * BlockSize * features }

// Put implements Form.
func (Float32) Put(block []byte, features, at int, rows []float32) {
	block = block[4*at*features:]
	for i, x := range rows {
		binary.LittleEndian.PutUint32(block[4*i:], math.Float32bits(x))
	}
}

// Get implements Form.
func (Float32) Get(rows []float32, block []byte, features, at int) {
	block = block[4*at*features:]
	for i := range rows {
		rows[i] = math.Float32frombits(binary.LittleEndian.Uint32(block[4*i:]))
	}
}

// Half keeps values in half precision, rounded to the nearest, ties to even: 64 rows, one after the other.
type Half struct{}

// Bytes implements Form.
func (Half) Bytes(features int) int { return 2 * BlockSize * features }

// Put implements Form.
func (Half) Put(block []byte, features, at int, rows []float32) {
	block = block[2*at*features:]
	for i, x := range rows {
		binary.LittleEndian.PutUint16(block[2*i:], quant.F32ToF16(x))
	}
}

// Get implements Form.
func (Half) Get(rows []float32, block []byte, features, at int) {
	block = block[2*at*features:]
	for i := range rows {
		rows[i] = quant.F16ToF32(binary.LittleEndian.Uint16(block[2*i:]))
	}
}

// KVScaled is how many features of K share a scale in q8. A few large features are common in K: with one scale for a
// whole row they would take precision from all others.
const KVScaled = 32

// KVTiny is a threshold: features that share a scale are all kept as zero if the largest of them is below it.
const KVTiny = 0x1p-100

// Scaled keeps features as int8, with a float32 scale for every Each features of a row, or for all where that is 0: 64
// rows of bytes, then 64 rows of scales. x is kept as round(x·s) with s = 127/amax, and read as that times 1/s, in
// float32, ties to even. Where amax is below KVTiny all is zero.
type Scaled struct{ Each int }

// Scales is how many scales a row has.
func (f Scaled) Scales(features int) int {
	if f.Each == 0 {
		return 1
	}
	return (features + f.Each - 1) / f.Each
}

// Bytes implements Form.
func (f Scaled) Bytes(features int) int { return BlockSize * (features + 4*f.Scales(features)) }

// each calls visit for all features that share a scale, of so many values of rows from row `at` of the block on: they
// are values [from, to), and scale is the offset of their scale in the block.
func (f Scaled) each(features, at, values int, visit func(from, to, scale int)) {
	step := features
	if f.Each > 0 {
		step = f.Each
	}
	scale := BlockSize*features + 4*at*f.Scales(features)
	for row := 0; row < values; row += features {
		for from := 0; from < features; from += step {
			visit(row+from, row+min(from+step, features), scale)
			scale += 4
		}
	}
}

// Put implements Form.
func (f Scaled) Put(block []byte, features, at int, rows []float32) {
	f.each(features, at, len(rows), func(from, to, scale int) {
		amax := float32(0)
		for _, x := range rows[from:to] {
			amax = max(amax, x, -x)
		}
		kept, factor, unit := block[at*features:], float32(0), float32(0)
		if !(amax < KVTiny) { // NaN stays NaN
			factor = 127 / amax
			unit = 1 / factor
		}
		for i := from; i < to; i++ {
			kept[i] = byte(int8(math.RoundToEven(float64(rows[i] * factor))))
		}
		binary.LittleEndian.PutUint32(block[scale:], math.Float32bits(unit))
	})
}

// Get implements Form.
func (f Scaled) Get(rows []float32, block []byte, features, at int) {
	f.each(features, at, len(rows), func(from, to, scale int) {
		unit := math.Float32frombits(binary.LittleEndian.Uint32(block[scale:]))
		for i := from; i < to; i++ {
			rows[i] = float32(int8(block[at*features+i])) * unit
		}
	})
}
