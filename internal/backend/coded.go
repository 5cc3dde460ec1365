package backend

import (
	"encoding/binary"

	"github.com/sluice-ai/sluice/internal/kvcode"
)

// Coded keeps rows rotated, in codes of a few bits: 64 rows of packed codes, then 64 rows of half scales. It is a
// sealed form, so that the newest positions stay as they are; a row's codes are a function of that row alone.
type Coded struct{ kvcode.Code }

// Bytes implements Form.
func (f Coded) Bytes(features int) int {
	return BlockSize * (f.PackedBytes(features) + 2*f.Scales(features))
}

// codedFeatures is up to how many features a row is coded without an allocation.
const codedFeatures = 1024

// codedRow is memory for a row.
type codedRow struct {
	row    [codedFeatures]float32
	codes  [codedFeatures]byte
	scales [codedFeatures / kvcode.Part]uint16
}

// take is the memory for so many features with so many scales.
func (m *codedRow) take(features, scales int) (row []float32, codes []byte, kept []uint16) {
	if features > codedFeatures {
		return make([]float32, features), make([]byte, features), make([]uint16, scales)
	}
	return m.row[:features], m.codes[:features], m.scales[:scales]
}

// Put implements Form.
func (f Coded) Put(block []byte, features, at int, rows []float32) {
	var memory codedRow
	row, codes, scales := memory.take(features, f.Scales(features))
	bytes := f.PackedBytes(features)
	for ; len(rows) > 0; rows, at = rows[features:], at+1 {
		copy(row, rows)
		kvcode.Rotate(row)
		f.Encode(codes, scales, row)
		f.Pack(block[at*bytes:][:bytes], codes)
		kept := block[BlockSize*bytes+2*at*len(scales):]
		for i, s := range scales {
			binary.LittleEndian.PutUint16(kept[2*i:], s)
		}
	}
}

// Get implements Form.
func (f Coded) Get(rows []float32, block []byte, features, at int) {
	var memory codedRow
	_, codes, scales := memory.take(features, f.Scales(features))
	bytes := f.PackedBytes(features)
	for ; len(rows) > 0; rows, at = rows[features:], at+1 {
		f.Unpack(codes, block[at*bytes:][:bytes])
		kept := block[BlockSize*bytes+2*at*len(scales):]
		for i := range scales {
			scales[i] = binary.LittleEndian.Uint16(kept[2*i:])
		}
		f.Decode(rows[:features], codes, scales)
		kvcode.Unrotate(rows[:features])
	}
}
