package kernels

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/quant"
)

// InFileOrder describes a matrix whose rows stay in data as they lie in the file: they are not packed beforehand, and
// there is no second copy. Row works as for packed matrices; products go through Strips.
func InFileOrder(t quant.Type, rows, cols int, data []byte) (*Matrix, error) {
	if _, err := Size(t, rows, cols); err != nil {
		return nil, err
	}
	m := &Matrix{Type: t, Rows: rows, Cols: cols, Data: data, FileOrder: true}
	if want := rows * m.rowBytes(); len(data) != want {
		return nil, fmt.Errorf("%s, %d rows of %d: %d bytes were given, want %d", t, rows, cols, len(data), want)
	}
	return m, nil
}

// Strips are one worker's memory for a few strips of matrices in file order. Strips are packed into it when they are
// needed, so the same kernels give the same bits.
type Strips struct {
	packed Matrix
	data   []byte
}

const (
	stripsBytes = 512 << 10 // a quarter of L2 where that matters: strips for all rows of a batch
	fewRows     = 8         // below so many rows one strip is packed at a time, which stays in L1
)

// StripsBytes is the memory that Strips need for matrices with rows of so many bytes.
func StripsBytes(row int) int { return max(TileRows*row, stripsBytes) }

// NewStrips makes strips of memory of StripsBytes bytes.
func NewStrips(memory []byte) Strips { return Strips{data: memory} }

// MatMul is Set.MatMul for matrices in file order as well. Calls for disjoint tiles may run at the same time.
func (o *Strips) MatMul(s *Set, out []float32, stride int, m *Matrix, bias []float32, tile0, tile1 int, x *Acts) {
	if !m.FileOrder {
		s.MatMul(out, stride, m, bias, tile0, tile1, x)
		return
	}
	size := m.StripBytes()
	each := len(o.data) / size
	if x.Rows < fewRows {
		each = 1
	}
	for tile := tile0; tile < tile1; tile += o.packed.Tiles() {
		row, n := tile*TileRows, m.alike(tile, tile1)
		if m.Packed != nil && m.Packed[tile] {
			o.packed = Matrix{Type: m.Type, Rows: n * TileRows, Cols: m.Cols, Data: m.Data[tile*size:][:n*size]}
		} else {
			n = min(each, n)
			rows := min(n*TileRows, m.Rows-row)
			o.packed = Matrix{Type: m.Type, Rows: rows, Cols: m.Cols, Data: o.data[:n*size]}
			s.pack(&o.packed, 0, m.Data[row*m.rowBytes():][:rows*m.rowBytes()], &s.transpose)
			m.keep(tile, n, o.packed.Data)
		}
		var its []float32
		if bias != nil {
			its = bias[row:][:o.packed.Rows]
		}
		s.MatMul(out[row:], stride, &o.packed, its, 0, o.packed.Tiles(), x)
	}
}

// alike is how many strips, from tile on and before end, are all packed in place, or all not.
func (m *Matrix) alike(tile, end int) int {
	if m.Packed == nil {
		return end - tile
	}
	n := 1
	for tile+n < end && m.Packed[tile+n] == m.Packed[tile] {
		n++
	}
	return n
}

// keep copies packed strips to their place in Data, if Packed is set: they take as many bytes there.
func (m *Matrix) keep(tile, n int, strips []byte) {
	if m.Packed == nil {
		return
	}
	copy(m.Data[tile*m.StripBytes():], strips)
	for i := range n {
		m.Packed[tile+i] = true
	}
}
