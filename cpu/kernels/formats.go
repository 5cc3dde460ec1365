package kernels

import "github.com/sluice-ai/sluice/internal/quant"

// A format is how weights of one type are packed and multiplied.
//
// A tile is 16 rows × one block of k, in exactly the bytes of 16 blocks of the file. Tiles follow each other
// along k; then come the next 16 rows. Missing rows of the last tiles are zero bytes.
//
// Every field of a block is cut into units, and unit u of row r lies at 16·offset + size·(16·u + r): the 16 rows
// are side by side, and a field starts in the tile at 16 times its offset in the file's block. Codes have units of
// 4 bytes, so a 64-byte vector holds 4 consecutive k of each row (8 for nibbles: the low and the high halves as in
// the file). Some fields are recoded on the way, to put their bits where vector code wants them.
type format struct {
	form   Form
	fields []field
	span   int // k of one FMA: twin.go
	bounds bounds
}

// field is a run of bytes of the file's block.
type field struct {
	offset, size int // bytes
	unit         int // bytes
	recode       *recoding
}

// recoding rearranges the bits of a field; unpack is the inverse of pack.
type recoding struct{ pack, unpack func(units []byte) }

// bounds are the largest magnitudes of what unpack finds, whatever the bytes: they prove that sums fit int32.
// Of 0: the format has no such thing; scales are then 1.
type bounds struct{ code, scale, low int }

var (
	f16     = []field{{0, 2, 2, nil}}
	formats = [...]format{
		quant.F32:  {form: Plain, fields: []field{{0, 4, 4, nil}}},
		quant.F16:  {form: Plain, fields: f16},
		quant.BF16: {form: Plain, fields: f16},

		// d, codes
		quant.Q4_0: {By32, []field{{0, 2, 2, nil}, {2, 16, 4, nil}}, 32, bounds{8, 0, 0}},
		quant.Q8_0: {By32, []field{{0, 2, 2, nil}, {2, 32, 4, nil}}, 32, bounds{128, 0, 0}},
		// d, m, codes
		quant.Q4_1: {By32, []field{{0, 4, 2, nil}, {4, 16, 4, nil}}, 32, bounds{15, 0, 1}},
		// d (m), bit 4, codes
		quant.Q5_0: {By32, []field{{0, 2, 2, nil}, {2, 4, 4, &bitsOf32}, {6, 16, 4, nil}}, 32, bounds{16, 0, 0}},
		quant.Q5_1: {By32, []field{{0, 4, 2, nil}, {4, 4, 4, &bitsOf32}, {8, 16, 4, nil}}, 32, bounds{31, 0, 1}},

		// d, dmin, scales (bit 4), codes
		quant.Q4_K: {By256, []field{{0, 4, 2, nil}, {4, 12, 4, &sixBitScales}, {16, 128, 4, nil}}, 256, bounds{15, 63, 63}},
		quant.Q5_K: {By256, []field{{0, 4, 2, nil}, {4, 12, 4, &sixBitScales}, {16, 160, 4, nil}}, 256, bounds{31, 63, 63}},
		// scales and minima, byte s of sub-block s, codes, d, dmin
		quant.Q2_K: {By256, []field{{0, 16, 1, nil}, {16, 64, 4, nil}, {80, 4, 2, nil}}, 256, bounds{3, 15, 15}},
		// bit 2, codes, scales, d
		quant.Q3_K: {By256, []field{{0, 32, 4, &thirdBits}, {32, 64, 4, nil}, {96, 12, 4, nil}, {108, 2, 2, nil}}, 256,
			bounds{4, 32, 0}},
		// codes, bits 4-5, scales int8 [16 sub-blocks][16 rows], d
		quant.Q6_K: {By256, []field{{0, 192, 4, nil}, {192, 16, 1, nil}, {208, 2, 2, nil}}, 256, bounds{32, 128, 0}},

		// d, codes
		quant.IQ4_NL: {By32, []field{{0, 2, 2, nil}, {2, 16, 4, nil}}, 32, bounds{127, 0, 0}},
		// exponent, codes
		quant.MXFP4: {By32, []field{{0, 1, 1, nil}, {1, 16, 4, nil}}, 32, bounds{12, 0, 0}},
		// d, high bits of scales, low bits, codes
		quant.IQ4_XS: {By256, []field{{0, 4, 2, nil}, {4, 4, 4, nil}, {8, 128, 4, nil}}, 256, bounds{127, 32, 0}},
	}
)
