package kernels

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// TileRows is the number of output rows in a tile. Rows are packed in multiples of it, except at the end.
const TileRows = 16

// Supports says whether matrices of type t can be packed and multiplied.
func Supports(t quant.Type) bool { return int(t) < len(formats) && formats[t].form != 0 }

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

// Matrix is a packed matrix: Rows outputs × Cols inputs. Data is the caller's memory, of Size bytes; it need not be
// aligned, but 64 bytes are faster.
type Matrix struct {
	Type       quant.Type
	Rows, Cols int
	Data       []byte
	FileOrder  bool // not packed: see InFileOrder
	// Packed says which strips of a matrix in file order have been packed in place; its rows must fill whole tiles. A
	// product packs the strips that it reads first. nil: Data is only read.
	Packed []bool
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

// Part is the matrix of n rows from one on, in the same memory; both numbers are multiples of 16.
func (m *Matrix) Part(row, n int) Matrix {
	part, size := *m, m.rowBytes()
	part.Rows, part.Data = n, m.Data[row*size:][:n*size]
	if m.Packed != nil {
		part.Packed = m.Packed[row/TileRows:][:n/TileRows]
	}
	return part
}

// StripBytes is the size of 16 rows.
func (m *Matrix) StripBytes() int { return m.rowBytes() * TileRows }

// strip is the packed bytes of 16 rows.
func (m *Matrix) strip(tile int) []byte {
	n := m.StripBytes()
	return m.Data[tile*n:][:n:n]
}

func (m *Matrix) rowBytes() int { return m.Cols / m.Type.Block() * m.Type.Bytes() }

// gather is the inverse of interleave, for lane r.
func gather(units, src []byte, unit, r int) {
	for u := 0; u*unit < len(units); u++ {
		copy(units[u*unit:][:unit], src[unit*(TileRows*u+r):])
	}
}

// RowBuffer is memory for some file blocks; the largest has 210 bytes.
type RowBuffer [512]byte

// Row decodes one row to dst, of Cols values: for embeddings. Its bits are those of quant.Dequantize. buf is scratch
// memory of the caller: decoders are called through a table, so a local buffer would be allocated on the heap.
func (m *Matrix) Row(dst []float32, row int, buf *RowBuffer) {
	if row < 0 || row >= m.Rows || len(dst) != m.Cols {
		panic(fmt.Sprintf("kernels: row %d of %d to %d values of %d", row, m.Rows, len(dst), m.Cols))
	}
	if m.FileOrder {
		size := m.rowBytes()
		if err := quant.Dequantize(m.Type, dst, m.Data[row*size:][:size]); err != nil {
			panic(fmt.Sprintf("kernels: a %s row does not decode: %v", m.Type, err))
		}
		return
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
	for _, f := range formats[m.Type].fields {
		units := dst[f.offset:][:f.size]
		gather(units, tile[TileRows*f.offset:], f.unit, r)
		if f.recode != nil {
			f.recode.unpack(units)
		}
	}
}

func half(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }
