package kernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// TileRows is the number of output rows in a tile. Rows are packed in multiples of it, except at the end.
const TileRows = 16

// A tile is 16 rows × one block of k, in exactly the bytes of 16 blocks of the file. Tiles follow each other
// along k; then come the next 16 rows. Missing rows of the last tiles are zero bytes.
//
// Every field of a block is cut into units, and unit u of row r lies at 16·offset + size·(16·u + r): the 16 rows
// are side by side. Codes have units of 4 bytes, so a 64-byte vector holds 4 consecutive k of each row (8 for
// nibbles: the low and the high halves as in the file). Where fields start in a tile:
//
//	F32   w 0                                  F16 BF16  w 0
//	Q8_0  d 0, q 32                            Q4_0      d 0, q 32
//	Q4_K  d 0, dmin 32, scales 64, q 256
//	Q5_K  d 0, dmin 32, scales 64, bit 4 256, q 768
//	Q6_K  q 0, bits 4-5 2048, scales 3072 (int8 [16 sub-blocks][16 rows]), d 3328
//
// The 12 bytes of 6-bit scales and minima of Q4_K and Q5_K are regrouped into 3 units, see packScales.
type field struct {
	offset, size int // in a file block, bytes
	unit         int // bytes
	scales       bool
}

var (
	halves  = []field{{0, 2, 2, false}}
	layouts = [...][]field{
		quant.F32:  {{0, 4, 4, false}},
		quant.F16:  halves,
		quant.BF16: halves,
		quant.Q4_0: {{0, 2, 2, false}, {2, 16, 4, false}},
		quant.Q8_0: {{0, 2, 2, false}, {2, 32, 4, false}},
		quant.Q4_K: {{0, 4, 2, false}, {4, 12, 4, true}, {16, 128, 4, false}},
		quant.Q5_K: {{0, 4, 2, false}, {4, 12, 4, true}, {16, 160, 4, false}},
		quant.Q6_K: {{0, 192, 4, false}, {192, 16, 1, false}, {208, 2, 2, false}},
	}
)

// Supports says whether matrices of type t can be packed and multiplied.
func Supports(t quant.Type) bool { return int(t) < len(layouts) && layouts[t] != nil }

// Size is the bytes of a packed matrix: whole tiles, so up to 15 rows more than the file has.
func Size(t quant.Type, rows, cols int) (int, error) {
	if !Supports(t) {
		return 0, fmt.Errorf("%s has no kernel: convert the model to a type that has one, such as Q8_0 or Q4_K", t)
	}
	row, err := t.RowBytes(cols)
	if err != nil {
		return 0, err
	}
	if rows <= 0 || cols <= 0 || rows > math.MaxInt-TileRows || row > math.MaxInt/tileCeil(rows) {
		return 0, fmt.Errorf("%s: a matrix of %d rows and %d columns cannot be stored", t, rows, cols)
	}
	return row * tileCeil(rows), nil
}

func tileCeil(rows int) int { return (rows + TileRows - 1) &^ (TileRows - 1) }

// Matrix is a packed matrix: Rows outputs × Cols inputs. Data is the caller's memory, of Size bytes, zero
// before Pack; it need not be aligned, but 64 bytes are faster.
type Matrix struct {
	Type       quant.Type
	Rows, Cols int
	Data       []byte
}

// NewMatrix describes a matrix that will be packed into data.
func NewMatrix(t quant.Type, rows, cols int, data []byte) (*Matrix, error) {
	size, err := Size(t, rows, cols)
	if err != nil {
		return nil, err
	}
	if len(data) != size {
		return nil, fmt.Errorf("%s, %d rows of %d: memory of %d bytes was given, want %d", t, rows, cols, len(data), size)
	}
	return &Matrix{Type: t, Rows: rows, Cols: cols, Data: data}, nil
}

// Tiles is the number of row tiles: the unit in which MatMul's work is split.
func (m *Matrix) Tiles() int { return tileCeil(m.Rows) / TileRows }

// strip is the packed bytes of 16 rows.
func (m *Matrix) strip(tile int) []byte {
	n := m.rowBytes() * TileRows
	return m.Data[tile*n:][:n:n]
}

func (m *Matrix) rowBytes() int { return m.Cols / m.Type.Block() * m.Type.Bytes() }

var errPieces = errors.New("rows are packed from a multiple of 16 on, in multiples of 16 up to the last")

// Pack stores rows [row, row+n) given in the file's layout; n follows from len(src). row must be a multiple of
// 16, and so must n, unless the rows end the matrix. Different pieces may be packed at the same time.
func (m *Matrix) Pack(row int, src []byte) error {
	size := m.rowBytes()
	n := len(src) / size
	if len(src)%size != 0 || row < 0 || row+n > m.Rows {
		return fmt.Errorf("%s, %d rows of %d bytes: %d bytes for row %d do not fit", m.Type, m.Rows, size, len(src), row)
	}
	if row%TileRows != 0 || n%TileRows != 0 && row+n != m.Rows {
		return fmt.Errorf("%s, %d rows: %d rows at row %d: %w", m.Type, m.Rows, n, row, errPieces)
	}
	for ; n > 0; row, n = row+TileRows, n-TileRows {
		piece := src[:min(n, TileRows)*size]
		m.packStrip(m.strip(row/TileRows), piece, size)
		src = src[len(piece):]
	}
	return nil
}

// gather is the inverse of interleave, for lane r.
func gather(units, src []byte, unit, r int) {
	for u := 0; u*unit < len(units); u++ {
		copy(units[u*unit:][:unit], src[unit*(TileRows*u+r):])
	}
}

// RowBuffer is memory for some file blocks; the largest has 210 bytes.
type RowBuffer [512]byte

// Row decodes one row to dst, of Cols values: for embeddings. Its bits are those of quant.Dequantize. buf is scratch,
// the caller's because decoders are called through a table, which would move a local one to the heap.
func (m *Matrix) Row(dst []float32, row int, buf *RowBuffer) {
	if row < 0 || row >= m.Rows || len(dst) != m.Cols {
		panic(fmt.Sprintf("kernels: row %d of %d to %d values of %d", row, m.Rows, len(dst), m.Cols))
	}
	strip, r := m.strip(row/TileRows), row%TileRows
	n, block := m.Type.Block(), m.Type.Bytes()
	blocks := len(buf) / block
	for k := 0; k < m.Cols; k += blocks * n {
		values := dst[k:min(k+blocks*n, m.Cols)]
		file, tiles := buf[:len(values)/n*block], strip[TileRows*k/n*block:]
		if n == 1 {
			gather(file, tiles, block, r)
		} else {
			for at := 0; at < len(file); at += block {
				m.fileBlock(file[at:][:block], tiles[TileRows*at:], r)
			}
		}
		if err := quant.Dequantize(m.Type, values, file); err != nil {
			panic(fmt.Sprintf("kernels: a packed %s block does not decode: %v", m.Type, err))
		}
	}
}

// fileBlock restores the file's block of lane r from a tile.
func (m *Matrix) fileBlock(dst, tile []byte, r int) {
	for _, f := range layouts[m.Type] {
		units := dst[f.offset:][:f.size]
		gather(units, tile[TileRows*f.offset:], f.unit, r)
		if f.scales {
			file := unpackScales((*[12]byte)(units))
			copy(units, file[:])
		}
	}
}

// splitScales is what packScales packed.
func splitScales(packed *[12]byte) (scales, mins [8]uint8) {
	for j, s := range [4]int{0, 2, 1, 3} {
		sc, mn, high := packed[j], packed[4+j], packed[8+j]
		scales[2*j], scales[2*j+1] = sc&15|high&3<<4, sc>>4|high>>2&3<<4
		mins[s], mins[s+4] = mn&15|high>>4&3<<4, mn>>4|high>>6<<4
	}
	return scales, mins
}

// unpackScales is the inverse of packScales.
func unpackScales(packed *[12]byte) (file [12]byte) {
	s, m := splitScales(packed)
	for i := range 4 {
		file[i] = s[i] | s[i+4]>>4<<6
		file[i+4] = m[i] | m[i+4]>>4<<6
		file[i+8] = s[i+4]&15 | m[i+4]<<4
	}
	return file
}

func half(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }
