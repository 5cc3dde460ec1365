package kernels

import (
	"fmt"
	"unsafe"
)

// rowsInCache is the most bytes of activations that a pass over the weights reads: they have to stay in L2 (1 MiB and
// more where it matters) beside a strip of weights.
const rowsInCache = 5 << 18

// MatMul computes out[r·stride+o] = Σₖ m[o,k]·x[r,k] + bias[o] for every row r of x and every output o of the tiles
// [tile0, tile1), and writes nothing else. Without bias, nil, nothing is added. Calls for disjoint tiles may run at the
// same time. The bits of a row's result depend on that row, m and the bias only.
//
// It panics if shapes do not agree, which is the caller's mistake. It allocates nothing.
func (s *Set) MatMul(out []float32, stride int, m *Matrix, bias []float32, tile0, tile1 int, x *Acts) {
	if tile0 >= tile1 || x.Rows == 0 {
		return
	}
	last := min(tile1*TileRows, m.Rows) // one past the last output
	if err := disagreement(len(out), stride, m, len(bias), tile0, tile1, x, last); err != nil {
		panic(err)
	}
	if !s.Has(m.Type) {
		for tile := tile0; tile < tile1; tile++ {
			o := tile * TileRows
			twin(out[o:], stride, min(TileRows, m.Rows-o), m, tile, x)
		}
		s.add(out, stride, bias, tile0*TileRows, last, x.Rows)
		return
	}
	if x.Rows == 1 {
		s.row(out, m, tile0, tile1, last, (*byte)(x.pointer(0)))
		s.add(out, stride, bias, tile0*TileRows, last, 1)
		return
	}
	together, strips := 32, 1 // rows in whole groups of any set's panel kernels, and strips that these take
	if x.Form == Plain {
		together, strips = 12, 2
	}
	step := max(together, rowsInCache/x.rowBytes()/together*together)
	passes := (x.Rows + step - 1) / step
	step = ((x.Rows+passes-1)/passes + together - 1) / together * together // equal passes, as each unpacks the weights
	for r := 0; r < x.Rows; r += step {
		end := min(r+step, x.Rows)
		for tile := tile0; tile < tile1; tile += strips {
			o := tile * TileRows
			lanes := min(strips*TileRows, last-o)
			s.strips(&out[r*stride+o], stride, lanes, m, tile, x, r, end)
			s.add(out[r*stride:], stride, bias, o, o+lanes, end-r)
		}
	}
}

// add adds biases to outputs [from, to) of some rows, while these are in the cache.
func (s *Set) add(out []float32, stride int, bias []float32, from, to, rows int) {
	if bias == nil {
		return
	}
	for r := range rows {
		y := out[r*stride:][from:to]
		s.Vec.Add(y, y, bias[from:to])
	}
}

// strips multiplies row tiles, of lanes outputs, by rows [r, end) of activations: whole groups of rows with panel
// kernels, the rest tile by tile.
func (s *Set) strips(out *float32, stride, lanes int, m *Matrix, tile int, x *Acts, r, end int) {
	w, blocks, size, first := unsafe.SliceData(m.strip(tile)), m.Cols/m.Type.Block(), x.rowBytes(), r
	for _, p := range s.panels[m.Type] {
		if p.tiles && x.Tiles == nil {
			continue
		}
		for end-r >= p.least {
			n := min((end-r)/p.group*p.group, p.most)
			if more := n + p.group; !p.tiles && n < end-r && more <= p.most && end-first >= more && end-r-n >= p.group/2 {
				back := more - (end - r) // rows before, again: the same bits
				r, n, out = end-more, more, (*float32)(unsafe.Add(unsafe.Pointer(out), -4*back*stride))
			}
			if p.tiles {
				p.multiply(out, 4*stride, n, lanes, w, &x.Tiles[r*size], TileRows*size, blocks)
			} else {
				p.multiply(out, 4*stride, n, lanes, w, (*byte)(x.pointer(r)), size, blocks)
			}
			if r += n; r == end {
				return
			}
			out = (*float32)(unsafe.Add(unsafe.Pointer(out), 4*n*stride))
		}
	}
	for o := 0; o < lanes; o += TileRows {
		at := (*float32)(unsafe.Add(unsafe.Pointer(out), 4*o))
		s.few(at, stride, min(lanes-o, TileRows), m, tile+o/TileRows, x.pointer(r), size, end-r)
	}
}

// Streams is how many strips a row kernel computes together at most, which is also the fastest number. It prefetches
// memory in that many streams.
const Streams = 4

// row multiplies tiles [tile0, tile1), whose outputs end before last, by one row of activations. The tiles are split
// into streams of neighbours, so that each stream is read in order.
func (s *Set) row(out []float32, m *Matrix, tile0, tile1, last int, x *byte) {
	one, blocks, size := s.one[m.Type], m.Cols/m.Type.Block(), m.rowBytes()*TileRows
	apart := (tile1 - tile0) / Streams
	multiply := func(tile, n, apart, stride int) {
		lanes := min(TileRows, last-(tile+(n-1)*apart)*TileRows)
		one(&out[tile*TileRows], 4*TileRows*apart, n, lanes, unsafe.SliceData(m.strip(tile)), x, stride, blocks)
	}
	for tile := tile0; tile < tile0+apart; tile++ {
		multiply(tile, Streams, apart, apart*size)
	}
	for tile := tile0 + Streams*apart; tile < tile1; tile++ {
		multiply(tile, 1, 0, m.lone())
	}
}

// lone is the distance of streams for a single strip, whose quarters are then the streams: in whole cache lines.
func (m *Matrix) lone() int { return (TileRows*m.Type.Bytes()/Streams + 63) &^ 63 }

// few multiplies a row tile by rows of activations, four at a time.
func (s *Set) few(out *float32, stride, lanes int, m *Matrix, tile int, x unsafe.Pointer, size, rows int) {
	w, blocks := unsafe.SliceData(m.strip(tile)), m.Cols/m.Type.Block()
	stride *= 4
	switch rows {
	case 1:
		s.one[m.Type](out, 0, 1, lanes, w, (*byte)(x), m.lone(), blocks)
	case 2: // rows 0, 0, 0, 1
		s.four[m.Type](out, 0, stride, lanes, w, (*byte)(x), 0, size, blocks)
	case 3: // rows 0, 1, 2, 2
		s.four[m.Type](out, stride, 2*stride, lanes, w, (*byte)(x), size, 2*size, blocks)
	default:
		for done := 0; done < rows; done += 4 {
			r := min(done, rows-4) // the last four may overlap those before: the same bits again
			o, a := unsafe.Add(unsafe.Pointer(out), r*stride), unsafe.Add(x, r*size)
			s.four[m.Type]((*float32)(o), stride, 3*stride, lanes, w, (*byte)(a), size, 3*size, blocks)
		}
	}
}

func (a *Acts) pointer(r int) unsafe.Pointer {
	if a.Form == Plain {
		return unsafe.Pointer(&a.Float[r*a.Stride])
	}
	return unsafe.Pointer(&a.Blocks[r*a.Form.RowBytes(a.Cols)])
}

// rowBytes is the distance of two rows in bytes.
func (a *Acts) rowBytes() int {
	if a.Form == Plain {
		return 4 * a.Stride
	}
	return a.Form.RowBytes(a.Cols)
}

// disagreement is an error if MatMul's arguments would make it read or write outside its slices.
func disagreement(out, stride int, m *Matrix, bias, tile0, tile1 int, x *Acts, last int) error {
	switch {
	case m.FileOrder:
		return fmt.Errorf("kernels: a matrix in file order is multiplied through Strips")
	case x.Form != FormOf(m.Type):
		return fmt.Errorf("kernels: %s meets activations of form %d, want %d", m.Type, x.Form, FormOf(m.Type))
	case x.Cols != m.Cols:
		return fmt.Errorf("kernels: a matrix of %d columns meets activations of %d", m.Cols, x.Cols)
	case tile0 < 0 || tile1 > m.Tiles():
		return fmt.Errorf("kernels: tiles %d to %d of %d", tile0, tile1, m.Tiles())
	case bias != 0 && bias != m.Rows:
		return fmt.Errorf("kernels: %d biases of %d outputs", bias, m.Rows)
	case stride < last || (x.Rows-1)*stride+last > out:
		return fmt.Errorf("kernels: %d rows of %d outputs, %d apart, in %d values", x.Rows, last, stride, out)
	case x.Form == Plain && (x.Stride < x.Cols || (x.Rows-1)*x.Stride+x.Cols > len(x.Float)):
		return fmt.Errorf("kernels: %d rows of %d activations, %d apart, in %d values",
			x.Rows, x.Cols, x.Stride, len(x.Float))
	case x.Tiles != nil && TileBytes(x.Rows, x.rowBytes()) > len(x.Tiles):
		return fmt.Errorf("kernels: %d rows of %d bytes in tiles of %d", x.Rows, x.rowBytes(), len(x.Tiles))
	case x.Form != Plain && x.Rows*x.rowBytes() > len(x.Blocks):
		return fmt.Errorf("kernels: %d prepared rows of %d bytes in %d", x.Rows, x.rowBytes(), len(x.Blocks))
	}
	return nil
}
