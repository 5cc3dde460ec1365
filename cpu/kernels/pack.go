package kernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// Packing is a transposition: what 16 rows have at the same offset gets side by side. Plain Go moves 8 bytes at a time,
// at 2 to 4 GB/s a core; a transposer is twice as fast and more.

// A transposer puts units of 1, 2 or 4 bytes of 16 rows, stride bytes apart, side by side: unit u of row r goes to
// (16·u + r)·size. It does so for columns of 16 bytes, and then some units more, at the beginning of each of one or
// more blocks: of block bytes in src, of 16 times that in dst. It reads and writes nothing else.
type transposer func(dst, src *byte, stride, columns, units, block, blocks int)

// transposers are indexed by the bytes of a unit; index fourths is one that also recodes.
type transposers [5]transposer

const fourths = 3 // index of the transposer that recodes as fourthCodes does

var errPieces = errors.New("rows are packed from a multiple of 16 on, in multiples of 16 up to the last")

// Pack stores rows [row, row+n) of m given in the file's layout; n follows from len(src). row must be a multiple of
// 16, and so must n, unless the rows end the matrix. Different pieces may be packed at the same time.
func (s *Set) Pack(m *Matrix, row int, src []byte) error {
	size := m.rowBytes()
	n := len(src) / size
	if len(src)%size != 0 || row < 0 || row+n > m.Rows {
		return fmt.Errorf("%s, %d rows of %d bytes: %d bytes for row %d do not fit", m.Type, m.Rows, size, len(src), row)
	}
	if row%TileRows != 0 || n%TileRows != 0 && row+n != m.Rows {
		return fmt.Errorf("%s, %d rows: %d rows at row %d: %w", m.Type, m.Rows, n, row, errPieces)
	}
	s.pack(m, row, src, &s.stream)
	return nil
}

// pack packs rows from a multiple of 16 on, with these transposers where they can be used.
func (s *Set) pack(m *Matrix, row int, src []byte, with *transposers) {
	size := m.rowBytes()
	for tile := row / TileRows; len(src) > 0; tile++ {
		piece := src[:min(len(src), TileRows*size)]
		s.packStrip(m, m.strip(tile), rows{piece, size, len(piece) / size}, with)
		src = src[len(piece):]
	}
}

// rows are up to 16 rows, stride bytes apart, n of them; the last stands for the missing ones.
type rows struct {
	data   []byte
	stride int
	n      int
}

// row is bytes [at, at+n) of row r.
func (x rows) row(r, at, n int) []byte { return x.data[min(r, x.n-1)*x.stride+at:][:n] }

// packStrip interleaves up to 16 rows, field by field.
func (s *Set) packStrip(m *Matrix, dst []byte, src rows, with *transposers) {
	block, fields := m.Type.Bytes(), formats[m.Type].fields
	var whole [1]field
	if m.Type.Block() == 1 { // one value after the other: the row is all units of one field
		whole[0] = field{size: src.stride, unit: block}
		block, fields = src.stride, whole[:]
	}
	for i := range fields {
		s.packField(dst, src, &fields[i], block, with)
	}
}

// packField interleaves a field of all blocks and recodes it: in the same pass if there is a transposer for that, else
// afterwards in dst.
func (s *Set) packField(dst []byte, src rows, f *field, block int, with *transposers) {
	to := dst[TileRows*f.offset:]
	if f.recode != nil {
		if s.transposed(to, src, f, f.recode.by, block, with) {
			return
		}
		with = &s.transpose // with stores that go to the caches, as recoding reads them again
	}
	if !s.transposed(to, src, f, f.unit, block, with) {
		for at := f.offset; at < src.stride; at += block {
			interleave(dst[TileRows*at:][:TileRows*f.size], src, at, f.unit)
		}
	}
	for at := f.offset; f.recode != nil && at < src.stride; at += block {
		f.recode.pack(dst[TileRows*at:][:TileRows*f.size])
	}
}

// transposed packs a field of all blocks with a transposer, and says whether there was one.
func (s *Set) transposed(dst []byte, src rows, f *field, by, block int, with *transposers) bool {
	transpose := with[by]
	if transpose == nil || !f.streams(dst, block) {
		transpose = s.transpose[by]
	}
	if transpose == nil || src.n < TileRows {
		return false
	}
	transpose(&dst[0], &src.data[f.offset], src.stride, f.size/16, f.size%16/f.unit, block, src.stride/block)
	return true
}

const (
	streamAlign = 32  // bytes
	streamBytes = 512 // of a run: 256 (Q4_0) were not faster than stores that stay in the caches
)

// streams says whether a field in tiles at dst may and should be written past the caches: in long runs of lines.
func (f *field) streams(dst []byte, block int) bool {
	return TileRows*f.size >= streamBytes && TileRows*block%streamAlign == 0 &&
		uintptr(unsafe.Pointer(&dst[0]))%streamAlign == 0
}

// interleave puts the units of 16 rows side by side, from byte at of each row on. It fills dst.
func interleave(dst []byte, src rows, at, unit int) {
	n := len(dst) / TileRows // bytes of a row
	switch unit {
	case 4:
		for r := 0; r < TileRows; r += 2 {
			interleave4(dst[4*r:], src.row(r, at, n), src.row(r+1, at, n))
		}
	case 2:
		for r := 0; r < TileRows; r += 4 {
			interleave2(dst[2*r:], src.row(r, at, n), src.row(r+1, at, n), src.row(r+2, at, n), src.row(r+3, at, n))
		}
	default:
		for r := range TileRows {
			for u, b := range src.row(r, at, n) {
				dst[TileRows*u+r] = b
			}
		}
	}
}

const (
	low32 = 1<<32 - 1
	low16 = 0x0000ffff0000ffff // of each 32 bits
)

// interleave4 puts units of 4 bytes of two rows into two neighbouring lanes.
func interleave4(dst, a, b []byte) {
	const lane = 4 * TileRows
	for len(a) >= 8 && len(b) >= 8 {
		x, y := load8(a), load8(b)
		out := (*[lane + 8]byte)(dst)
		store8(out[:], x&low32|y<<32)
		store8(out[lane:], x>>32|y&^low32)
		a, b = a[8:], b[8:]
		if len(a) == 0 {
			return
		}
		dst = dst[2*lane:]
	}
	copy(dst, a)
	copy(dst[4:], b)
}

// interleave2 puts units of 2 bytes of four rows into four neighbouring lanes.
func interleave2(dst, a, b, c, d []byte) {
	const lane = 2 * TileRows
	for len(a) >= 8 && len(b) >= 8 && len(c) >= 8 && len(d) >= 8 {
		x, y, z, w := load8(a), load8(b), load8(c), load8(d)
		x, y = x&low16|y&low16<<16, x>>16&low16|y&^low16 // units 0 and 2 of a and b, then 1 and 3
		z, w = z&low16|w&low16<<16, z>>16&low16|w&^low16
		out := (*[3*lane + 8]byte)(dst)
		store8(out[:], x&low32|z<<32)
		store8(out[lane:], y&low32|w<<32)
		store8(out[2*lane:], x>>32|z&^low32)
		store8(out[3*lane:], y>>32|w&^low32)
		a, b, c, d = a[8:], b[8:], c[8:], d[8:]
		if len(a) == 0 {
			return
		}
		dst = dst[4*lane:]
	}
	for ; len(a) >= 2 && len(b) >= 2 && len(c) >= 2 && len(d) >= 2; a, b, c, d = a[2:], b[2:], c[2:], d[2:] {
		store8(dst, load2(a)|load2(b)<<16|load2(c)<<32|load2(d)<<48)
		if len(a) == 2 {
			return
		}
		dst = dst[lane:]
	}
}

func load2(b []byte) uint64     { return uint64(binary.LittleEndian.Uint16(b)) }
func load8(b []byte) uint64     { return binary.LittleEndian.Uint64(b) }
func store8(b []byte, x uint64) { binary.LittleEndian.PutUint64(b, x) }
