package backend

import (
	"encoding/binary"

	"github.com/sluice-ai/sluice/internal/kvcode"
)

// Coded is a form that keeps rows rotated, in codes of a few bits: a block is 64 rows of packed codes, then 64 rows of
// scales in half precision. It is used as a sealed form, so that the newest positions keep their precision; a row's
// codes depend on that row alone.
type Coded struct{ kvcode.Code }

// Bytes implements Form.
func (f Coded) Bytes(features int) int {
	return BlockSize * (f.PackedBytes(features) + 2*f.Scales(features))
}

// codedFeatures is the largest number of features for which a row is coded without an allocation.
const codedFeatures = 1024

// codedRow is scratch memory to code one row.
type codedRow struct {
	row    [codedFeatures]float32
	codes  [codedFeatures]byte
	scales [codedFeatures / kvcode.Part]uint16
}

// take returns scratch memory for a row of so many features and scales.
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
