package kernels

import "github.com/sluice-ai/sluice/internal/quant"

// A format is how weights of one type are packed and multiplied.
//
// A tile is 16 rows × one block of k, in exactly the bytes of 16 blocks of the file. Tiles follow each other
// along k; then come the next 16 rows. Missing rows of the last tiles are the last row again.
//
// Every field of a block is cut into units, and unit u of row r lies at 16·offset + size·(16·u + r): the 16 rows
// are side by side, and a field starts in the tile at 16 times its offset in the file's block. Codes have units of
// 4 bytes, so a 64-byte vector holds 4 consecutive k of each row (8 for nibbles: the low and the high halves as in
// the file). Some fields are recoded on the way, to put their bits where vector code wants them.
type format struct {
	form   Form
	fields []field
}

// field is a run of bytes of the file's block.
type field struct {
	offset, size int // bytes
	unit         int // bytes
	recode       *recoding
}

var (
	f16     = []field{{0, 2, 2, nil}}
	formats = [...]format{
		quant.F32:  {form: Plain, fields: []field{{0, 4, 4, nil}}},
		quant.F16:  {form: Plain, fields: f16},
		quant.BF16: {form: Plain, fields: f16},

		// d, codes
		quant.Q4_0: {By32, []field{{0, 2, 2, nil}, {2, 16, 4, nil}}},
		quant.Q8_0: {By32, []field{{0, 2, 2, nil}, {2, 32, 4, nil}}},
		// d, m, codes
		quant.Q4_1: {By32, []field{{0, 4, 2, nil}, {4, 16, 4, nil}}},
		// d (m), bit 4, codes
		quant.Q5_0: {By32, []field{{0, 2, 2, nil}, {2, 4, 4, &bitsOf32}, {6, 16, 4, nil}}},
		quant.Q5_1: {By32, []field{{0, 4, 2, nil}, {4, 4, 4, &bitsOf32}, {8, 16, 4, nil}}},

		// d, dmin, scales (bit 4), codes
		quant.Q4_K: {By256, []field{{0, 4, 2, nil}, {4, 12, 4, &sixBitScales}, {16, 128, 4, nil}}},
		quant.Q5_K: {By256, []field{{0, 4, 2, nil}, {4, 12, 4, &sixBitScales}, {16, 160, 4, nil}}},
		// scales and minima, byte s of sub-block s, codes, d, dmin
		quant.Q2_K: {By256, []field{{0, 16, 1, nil}, {16, 64, 4, nil}, {80, 4, 2, nil}}},
		// bit 2, codes, scales, d
		quant.Q3_K: {By256, []field{{0, 32, 4, &thirdBits}, {32, 64, 4, nil}, {96, 12, 4, nil}, {108, 2, 2, nil}}},
		// codes, scales int8 [16 sub-blocks][16 rows], d
		quant.Q6_K: {By256, []field{{0, 192, 4, &fourthCodes}, {192, 16, 1, nil}, {208, 2, 2, nil}}},

		// d, codes
		quant.IQ4_NL: {By32, []field{{0, 2, 2, nil}, {2, 16, 4, nil}}},
		// exponent, codes
		quant.MXFP4: {By32, []field{{0, 1, 1, nil}, {1, 16, 4, nil}}},
		// scales, codes
		quant.NVFP4: {By32, []field{{0, 4, 1, nil}, {4, 32, 4, nil}}},
		// d, high bits of scales, low bits, codes
		quant.IQ4_XS: {By256, []field{{0, 4, 2, nil}, {4, 4, 4, nil}, {8, 128, 4, nil}}},

		// codes, d
		quant.TQ1_0: {By256, []field{{0, 52, 4, nil}, {52, 2, 2, nil}}},
		// d, codes
		quant.Q1_0:  {By32, []field{{0, 2, 2, nil}, {2, 16, 4, &bitsOf32}}},
		quant.Q2_0:  {By32, []field{{0, 2, 2, nil}, {2, 16, 4, &pairsOf16}}},
		quant.TQ2_0: {By256, []field{{0, 64, 4, nil}, {64, 2, 2, nil}}},

		// d, then of each 32: numbers, signs with the scale
		quant.IQ2_XXS: {By256, []field{{0, 2, 2, nil}, {2, 64, 4, &numbersThenSigns}}},
		// d, then of each 32: numbers, signs with the ninth bits; scales
		quant.IQ2_XS: {By256, []field{{0, 2, 2, nil}, {2, 64, 4, &ninthBits}, {66, 8, 1, nil}}},
		// d, numbers, signs, more bits of numbers, scales
		quant.IQ2_S: {By256, []field{
			{0, 2, 2, nil}, {2, 32, 4, nil}, {34, 32, 4, &bitsOf32}, {66, 8, 1, nil}, {74, 8, 1, nil}}},
		// d, numbers, signs with the scale
		quant.IQ3_XXS: {By256, []field{{0, 2, 2, nil}, {2, 64, 4, nil}, {66, 32, 4, &evenSigns}}},
		// d, numbers, more bits of numbers, signs, scales
		quant.IQ3_S: {By256, []field{
			{0, 2, 2, nil}, {2, 64, 4, nil}, {66, 8, 1, nil}, {74, 32, 4, &bitsOf32}, {106, 4, 4, nil}}},
		// d, numbers, more bits with scale and shift
		quant.IQ1_S: {By256, []field{{0, 2, 2, nil}, {2, 32, 4, nil}, {34, 16, 2, nil}}},
		// numbers, more bits with shifts, d and scales
		quant.IQ1_M: {By256, []field{{0, 32, 4, nil}, {32, 16, 2, &shiftsAbove}, {48, 8, 2, &halfThenScales}}},
	}
)
