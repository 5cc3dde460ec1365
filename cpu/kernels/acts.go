package kernels

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Form is how activations are prepared for a multiplication; the weights' type decides.
type Form uint8

const (
	// Plain activations stay float32: for F32, F16 and BF16.
	Plain Form = iota + 1
	// By32 has int8 with a scale for each 32: for formats in blocks of 32 to 128. A block takes 40 bytes:
	//
	//	0 x int8[32] in [-127, 127]; 32 dx float32; 36 -Σx int32
	By32
	// By256 has int8 with a scale for each 256: for formats in blocks of 256. A block takes 352 bytes:
	//
	//	0 x int8[256] in [-127, 127]; 256 -Σx of each 16, int32[16]; 320 Σx of each 32, int16[8]; 336 dx float32
	//
	// The other bytes are not used. The sums are negative where kernels start from them: a kernel that
	// multiplies codes q+c instead of q begins with c·(-Σx), and ends with the exact Σ q·x.
	By256
	forms
)

const (
	x32Bytes, x32Scale, x32Neg              = 40, 32, 36
	x256Bytes, x256Neg, x256Sums, x256Scale = 352, 256, 320, 336
	infBits, tinyBits                       = 0x7f800000, (127 - 100) << 23 // bits of +∞ and of 2⁻¹⁰⁰
)

// FormOf is the form of activations that weights of a supported type are multiplied with.
func FormOf(t quant.Type) Form { return formats[t].form }

// RowBytes is the size of a row of cols values in Acts.Blocks; 0 for Plain. cols must fill whole blocks.
func (f Form) RowBytes(cols int) int {
	if f == Plain {
		return 0
	}
	return cols / blockValues[f] * blockBytes[f]
}

// Acts are the activations of Rows rows of Cols values. The memory is the caller's.
type Acts struct {
	Form       Form
	Rows, Cols int
	Float      []float32 // Plain: row r starts at r·Stride
	Stride     int
	Blocks     []byte // other forms: row r starts at r·Form.RowBytes(Cols); filled by Set.Quantize
	// Tiles, if not nil, holds the rows of Blocks again in another order, in TileBytes bytes, for a set that is Tiled;
	// it should be aligned to 64 bytes. A group of 16 rows takes as many bytes as its rows in Blocks. Its blocks follow
	// one another along k; each has the values of the rows, 64 of k of all rows in turn, then the bytes that follow the
	// values in each row's block.
	Tiles []byte
}

// TileBytes is the size of Acts.Tiles for so many rows of RowBytes bytes. Kernels read whole tiles: two groups of rows,
// and up to three By32 blocks past the last.
func TileBytes(rows, row int) int { return (rows+31)&^31*row + 3*TileRows*x32Bytes }

// Quantize prepares row r from src, of Cols values; it has nothing to do for Plain. Rows may be prepared at the
// same time. NaN and infinity have no quantised form and are an error.
//
// In each block x = round(src·s) with s = 127/amax, and dx = 1/s, in float32, ties to even; a block with amax < 2⁻¹⁰⁰
// is all zero. The sums are those of the rounded x. See docs/adr/0004 for this choice among equals.
func (s *Set) Quantize(a *Acts, r int, src []float32) error {
	if a.Form == Plain {
		return nil
	}
	size := a.Form.RowBytes(a.Cols)
	dst := a.Blocks[r*size:][:size]
	if len(src) != a.Cols {
		panic(fmt.Sprintf("kernels: %d activations for a row of %d", len(src), a.Cols))
	}
	if len(src) == 0 || s.quantize[a.Form](&dst[0], &src[0], size/blockBytes[a.Form]) {
		a.tile(r)
		return nil
	}
	for i, x := range src {
		if math.Float32bits(x)&^(1<<31) >= infBits {
			return fmt.Errorf("activation %d of row %d is %v: the weights or an earlier result are broken", i, r, x)
		}
	}
	panic("kernels: a quantiser refused finite activations")
}

// CopyRow copies a row of another Acts of the same form and width, which is prepared, to row r.
func (a *Acts) CopyRow(r int, from *Acts, row int) {
	size := a.Form.RowBytes(a.Cols)
	copy(a.Blocks[r*size:][:size], from.Blocks[row*size:])
	a.tile(r)
}

// tile copies row r of Blocks to Tiles.
func (a *Acts) tile(r int) {
	if a.Tiles == nil {
		return
	}
	size := a.Form.RowBytes(a.Cols)
	src, dst := a.Blocks[r*size:][:size], a.Tiles[r/TileRows*TileRows*size:][:TileRows*size]
	r %= TileRows
	if a.Form == By32 {
		for ; len(src) > 0; src, dst = src[x32Bytes:], dst[TileRows*x32Bytes:] {
			*(*[32]byte)(dst[32*r:]) = [32]byte(src)
			*(*[x32Bytes - 32]byte)(dst[32*TileRows+(x32Bytes-32)*r:]) = [x32Bytes - 32]byte(src[32:])
		}
		return
	}
	for ; len(src) > 0; src, dst = src[x256Bytes:], dst[TileRows*x256Bytes:] {
		for k := 0; k < 256; k += 64 {
			*(*[64]byte)(dst[TileRows*k+64*r:]) = [64]byte(src[k:])
		}
		*(*[x256Bytes - 256]byte)(dst[256*TileRows+(x256Bytes-256)*r:]) = [x256Bytes - 256]byte(src[256:])
	}
}

// Values and bytes of a block, and the offset of dx in it.
var (
	blockValues = [forms]int{By32: 32, By256: 256}
	blockBytes  = [forms]int{By32: x32Bytes, By256: x256Bytes}
	blockScale  = [forms]int{By32: x32Scale, By256: x256Scale}
)

// A quantizer prepares n blocks and says whether all values were finite.
type quantizer func(dst *byte, src *float32, n int) bool

// quantizeBlock rounds src to x and gives its scale, by the rule at Set.Quantize.
func quantizeBlock(x []byte, src []float32) (dx float32, ok bool) {
	var most uint32 // magnitudes order like their bits, and NaN above infinity
	for _, v := range src {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	if most >= infBits {
		return 0, false
	}
	if most < tinyBits {
		clear(x)
		return 0, true
	}
	amax := math.Float32frombits(most)
	scale := 127 / amax
	for i, v := range src {
		x[i] = byte(int8(math.RoundToEven(float64(v * scale))))
	}
	return 1 / scale, true
}

func sum(x []byte) (n int32) {
	for _, v := range x {
		n += int32(int8(v))
	}
	return n
}

// A rounder does what quantizeBlock does.
type rounder func(x []byte, src []float32) (dx float32, ok bool)

func quantize32(dst []byte, src []float32, round rounder) bool {
	for ; len(src) > 0; dst, src = dst[x32Bytes:], src[32:] {
		dx, ok := round(dst[:32], src[:32])
		if !ok {
			return false
		}
		binary.LittleEndian.PutUint32(dst[x32Scale:], math.Float32bits(dx))
		binary.LittleEndian.PutUint32(dst[x32Neg:], uint32(-sum(dst[:32])))
	}
	return true
}

func quantize256(dst []byte, src []float32, round rounder) bool {
	for ; len(src) > 0; dst, src = dst[x256Bytes:], src[256:] {
		dx, ok := round(dst[:256], src[:256])
		if !ok {
			return false
		}
		for s := range 16 {
			binary.LittleEndian.PutUint32(dst[x256Neg+4*s:], uint32(-sum(dst[16*s:][:16])))
		}
		for s := range 8 {
			binary.LittleEndian.PutUint16(dst[x256Sums+2*s:], uint16(sum(dst[32*s:][:32])))
		}
		binary.LittleEndian.PutUint32(dst[x256Scale:], math.Float32bits(dx))
	}
	return true
}
