package quant

import "math/rand/v2"

// format is one row of the table. The codecs work on whole blocks, of lengths that have been checked.
type format struct {
	name   string
	block  int // values
	bytes  int
	bounds Bounds
	decode func(dst []float32, src []byte) // nil where only the size is known
	encode func(dst []byte, b *target)     // one block; nil for plain numbers too
	size   *sizing                         // nil for what is not decoded in blocks
	plain  func(dst []byte, src []float32) // encodes plain numbers; else nil
}

// sizing says where a block keeps its scale and offset; random blocks may have anything in all other bits. Without put,
// get and one they are halves at the offsets d and min.
type sizing struct {
	d      int     // offset of the scale
	min    int     // offset of the number that moves values, 0 where there is none
	centre float64 // min as a multiple of the scale that gives random codes a mean of 0

	put    func(block []byte, scale uint16)            // writes a half that is not contiguous
	get    func(block []byte, run int) float32         // the scale of a run of SplitRun values
	one    func(block []byte)                          // sets all scales to 1
	random func(dst []byte, dev float64, r *rand.Rand) // fills whole blocks
}

// Bounds are the ranges of a block's numbers, whatever its bytes: they say which sums of products fit an int32.
//
// A value is code·scale·unit - low·unit', where codes, scales and lows are whole numbers and the units are floats.
// In formats with halves and quarters, these are multiplied to whole numbers: codes of IQ1_S by 8, 4-bit floats by 2,
// and the IQ types' scales s + 1/2 by 2.
type Bounds struct {
	Codes, Scales Range   // Scales is 1 to 1 where a block has none, or has floats
	Low           int     // lows are 0 to Low; 0 where there are none
	Span          int     // values that share units
	Most          float32 // the largest magnitude that can be encoded
}

// Range holds the numbers from Min to Max.
type Range struct{ Min, Max int }

const mostHalf = 65504 // the largest finite half

// formats describes all formats, indexed by Type; tests compare lists of formats elsewhere with it (see All). Source of
// sizes and layouts: ggml-common.h of ggml.
//
// Numbers are little-endian. Offsets are bytes from the start of a block; "f16" is an IEEE half. A nibble array
// of n bytes holds 2n codes: byte j has code j in its low half and code j+n in its high half, so that low and
// high halves are runs of consecutive values. y is the decoded value, q the stored code.
var formats = []format{
	// Plain numbers.
	F32:  {"F32", 1, 4, Bounds{}, decodeF32, nil, nil, encodeF32},
	F16:  {"F16", 1, 2, Bounds{}, decodeF16, nil, nil, encodeF16},
	BF16: {"BF16", 1, 2, Bounds{}, decodeBF16, nil, nil, encodeBF16},
	F64:  {"F64", 1, 8, Bounds{}, nil, nil, nil, nil},
	I8:   {"I8", 1, 1, Bounds{}, nil, nil, nil, nil},
	I16:  {"I16", 1, 2, Bounds{}, nil, nil, nil, nil},
	I32:  {"I32", 1, 4, Bounds{}, nil, nil, nil, nil},
	I64:  {"I64", 1, 8, Bounds{}, nil, nil, nil, nil},

	// Blocks of 32 with one scale.
	//
	// Q4_0: d f16 @0, 16 bytes of nibbles @2. y = (q-8)·d.
	Q4_0: {"Q4_0", 32, 18, Bounds{Range{-8, 7}, Range{1, 1}, 0, 32, 8 * mostHalf},
		decodeQ4_0, encodeQ4_0, &sizing{}, nil},
	// Q4_1: d f16 @0, m f16 @2, 16 bytes of nibbles @4. y = q·d + m.
	Q4_1: {"Q4_1", 32, 20, Bounds{Range{0, 15}, Range{1, 1}, 1, 32, mostHalf},
		decodeQ4_1, encodeQ4_1, &sizing{min: 2, centre: -7.5}, nil},
	// Q5_0: d f16 @0, qh u32 @2: bit i is bit 4 of code i, 16 bytes of nibbles @6. y = (q-16)·d.
	Q5_0: {"Q5_0", 32, 22, Bounds{Range{-16, 15}, Range{1, 1}, 0, 32, 16 * mostHalf},
		decodeQ5_0, encodeQ5_0, &sizing{}, nil},
	// Q5_1: d f16 @0, m f16 @2, qh u32 @4, 16 bytes of nibbles @8. y = q·d + m.
	Q5_1: {"Q5_1", 32, 24, Bounds{Range{0, 31}, Range{1, 1}, 1, 32, mostHalf},
		decodeQ5_1, encodeQ5_1, &sizing{min: 2, centre: -15.5}, nil},
	// Q8_0: d f16 @0, 32 int8 @2. y = q·d.
	Q8_0: {"Q8_0", 32, 34, Bounds{Range{-128, 127}, Range{1, 1}, 0, 32, 127 * mostHalf},
		decodeQ8_0, encodeQ8_0, &sizing{}, nil},
	// Q8_1: d f16 @0, s f16 @2 = d·Σq, 32 int8 @4. For activations; no file stores it.
	Q8_1: {"Q8_1", 32, 36, Bounds{}, nil, nil, nil, nil},

	// Super-blocks of 256: two levels of scales.
	//
	// Q2_K, 16 sub-blocks of 16: scales 16 bytes @0, byte i = scale in the low nibble, minimum in the high one;
	// qs 64 bytes @16; d f16 @80; dmin f16 @82. The 32 bytes of qs for each half of 128 hold four runs of
	// 32 codes: bits 0-1, 2-3, 4-5, 6-7. y = d·scale·q - dmin·min.
	Q2_K: {"Q2_K", 256, 84, Bounds{Range{0, 3}, Range{0, 15}, 15, 256, 15 * mostHalf},
		decodeQ2_K, encodeQ2_K, &sizing{d: 80, min: 82, centre: 1.5}, nil},
	// Q3_K, 16 sub-blocks of 16: hmask 32 bytes @0; qs 64 bytes @32, as in Q2_K; scales 12 bytes @96; d f16 @108.
	// Run r (0-7) of 32 values has its third bit in bit r of hmask; clear means minus 4. Scale i is 6 bits,
	// biased by 32: low 4 bits are nibble array scales[0:8]; the high 2 are bits 2·(i/4) of scales[8+i%4].
	// y = d·(scale-32)·(q - 4·[bit clear]).
	Q3_K: {"Q3_K", 256, 110, Bounds{Range{-4, 3}, Range{-32, 31}, 0, 256, 4 * 31 * mostHalf},
		decodeQ3_K, encodeQ3_K, &sizing{d: 108}, nil},
	// Q4_K, 8 sub-blocks of 32: d f16 @0, dmin f16 @2, scales 12 bytes @4, qs 128 bytes @16: four nibble
	// arrays of 32 bytes, sub-blocks 2p (low) and 2p+1 (high). 8 scales and 8 minima of 6 bits each:
	//	i < 4:  scale = s[i] & 63, min = s[i+4] & 63
	//	i >= 4: scale = s[i+4]&15 | s[i-4]>>6<<4, min = s[i+4]>>4 | s[i]>>6<<4
	// y = d·scale·q - dmin·min.
	Q4_K: {"Q4_K", 256, 144, Bounds{Range{0, 15}, Range{0, 63}, 63, 256, 63 * mostHalf},
		decodeQ4_K, encodeQ4_K, &sizing{min: 2, centre: 7.5}, nil},
	// Q5_K: as Q4_K, with qh 32 bytes @16 and qs @48; bit s of qh[l] is bit 4 of code l of sub-block s.
	Q5_K: {"Q5_K", 256, 176, Bounds{Range{0, 31}, Range{0, 63}, 63, 256, 63 * mostHalf},
		decodeQ5_K, encodeQ5_K, &sizing{min: 2, centre: 15.5}, nil},
	// Q6_K, 16 sub-blocks of 16: ql 128 bytes @0, qh 64 bytes @128, scales 16 int8 @192, d f16 @208. Each half
	// of 128 takes 64 bytes of ql and 32 of qh. Runs of 32: 0 and 1 are the low nibbles of ql[0:32] and
	// ql[32:64], 2 and 3 their high nibbles; run r has its bits 4-5 in bits 2r of qh. y = d·scale·(q-32).
	Q6_K: {"Q6_K", 256, 210, Bounds{Range{-32, 31}, Range{-128, 127}, 0, 256, 32 * 127 * mostHalf},
		decodeQ6_K, encodeQ6_K, &sizing{d: 208}, nil},
	// Q8_K: d f32 @0, 256 int8 @4, 16 int16 sums @260. For activations; no file stores it.
	Q8_K: {"Q8_K", 256, 292, Bounds{}, nil, nil, nil, nil},

	// Codes that index a table of values.
	//
	// IQ4_NL: d f16 @0, 16 bytes of nibbles @2. y = d·nonlinear[q].
	IQ4_NL: {"IQ4_NL", 32, 18, Bounds{Range{-127, 113}, Range{1, 1}, 0, 32, 113 * mostHalf},
		decodeIQ4_NL, encodeIQ4_NL, &sizing{}, nil},
	// IQ4_XS, 8 sub-blocks of 32: d f16 @0, high 2 bits of the scales u16 @2 (bits 2i), low 4 bits 4 bytes @4
	// (nibble i%2 of byte i/2), then per sub-block 16 bytes of nibbles @8. y = d·(scale-32)·nonlinear[q].
	IQ4_XS: {"IQ4_XS", 256, 136, Bounds{Range{-127, 113}, Range{-32, 31}, 0, 256, 113 * 31 * mostHalf},
		decodeIQ4_XS, encodeIQ4_XS, &sizing{}, nil},
	// Codes that number the points of a grid: groups of 8 or 4 values at once, grid.go.
	//
	// IQ2_XXS, 8 sub-blocks of 32: d f16 @0; per sub-block 8 bytes @2: 4 indexes of a byte, then a u32 with 7 signs
	// for each group of 8 in bits 7k, and scale in bits 28-31. Bit j of the signs is set for a negative value j; the
	// eighth makes their number even. y = ±d·(scale+1/2)/4·point.
	IQ2_XXS: {"IQ2_XXS", 256, 66, Bounds{Range{-43, 43}, Range{1, 31}, 0, 256, 43 * 31 / 8 * mostHalf},
		decodeIQ2_XXS, encodeIQ2_XXS, &sizing{}, nil},
	// IQ2_XS, 16 sub-blocks of 16: d f16 @0; 32 u16 @2, for each group of 8 its index in bits 0-8 and 7 signs above,
	// as in IQ2_XXS; scales 8 bytes @66, nibble i%2 of byte i/2. y as in IQ2_XXS.
	IQ2_XS: {"IQ2_XS", 256, 74, Bounds{Range{-43, 43}, Range{1, 31}, 0, 256, 43 * 31 / 8 * mostHalf},
		decodeIQ2_XS, encodeIQ2_XS, &sizing{}, nil},
	// IQ2_S, 16 sub-blocks of 16: d f16 @0; for each group of 8: bits 0-7 of its index, 32 bytes @2, all 8 signs,
	// 32 bytes @34, bits 8-9 of the index, 8 bytes @66 (bits 2·(k%4) of byte k/4); scales @74 and y as in IQ2_XS.
	IQ2_S: {"IQ2_S", 256, 82, Bounds{Range{-43, 43}, Range{1, 31}, 0, 256, 43 * 31 / 8 * mostHalf},
		decodeIQ2_S, encodeIQ2_S, &sizing{}, nil},
	// IQ3_XXS, 8 sub-blocks of 32: d f16 @0; indexes of 64 groups of 4 @2; per sub-block a u32 @66 with signs and
	// scale as in IQ2_XXS, 8 signs for two groups. y = ±d·(scale+1/2)/2·point.
	IQ3_XXS: {"IQ3_XXS", 256, 98, Bounds{Range{-62, 62}, Range{1, 31}, 0, 256, 62 * 31 / 4 * mostHalf},
		decodeIQ3_XXS, encodeIQ3_XXS, &sizing{}, nil},
	// IQ3_S, 8 sub-blocks of 32: d f16 @0; for 64 groups of 4: bits 0-7 of the index @2, bit 8 @66 (bit k%8 of byte
	// k/8); all 256 signs, 32 bytes @74; scales 4 bytes @106, nibble i%2 of byte i/2. y = ±d·(2·scale+1)·point.
	IQ3_S: {"IQ3_S", 256, 110, Bounds{Range{-15, 15}, Range{1, 31}, 0, 256, 15 * 31 * mostHalf},
		decodeIQ3_S, encodeIQ3_S, &sizing{}, nil},
	// IQ1_S, 8 sub-blocks of 32: d f16 @0; bits 0-7 of the indexes of 32 groups of 8 @2; per sub-block a u16 @34 with
	// bits 8-10 of its 4 indexes in bits 3k, scale in bits 12-14, and the sign of the shift in bit 15.
	// y = d·(2·scale+1)·(point ± 1/8).
	IQ1_S: {"IQ1_S", 256, 50, Bounds{Range{-9, 9}, Range{1, 15}, 0, 256, 15 * mostHalf},
		decodeIQ1_S, encodeIQ1_S, &sizing{}, nil},
	// IQ1_M, 16 sub-blocks of 16: bits 0-7 of the indexes of 32 groups of 8 @0; for each group a nibble @32 with bits
	// 8-10 and the sign of the shift; 4 u16 @48, with 4 scales each in bits 3i, and 4 bits of d, an f16, in the high
	// nibble, the lowest first. y as in IQ1_S.
	IQ1_M: {"IQ1_M", 256, 56, Bounds{Range{-9, 9}, Range{1, 15}, 0, 256, 15 * mostHalf},
		decodeIQ1_M, encodeIQ1_M, &sizing{put: putScaleIQ1_M, get: runIQ1_M}, nil},

	// Ternary and binary.
	//
	// TQ1_0: qs 48 bytes @0 (5 digits of base 3 a byte), qh 4 @48 (4 digits a byte), d f16 @52.
	TQ1_0: {"TQ1_0", 256, 54, Bounds{Range{-1, 1}, Range{1, 1}, 0, 256, mostHalf},
		decodeTQ1_0, encodeTQ1_0, &sizing{d: 52}, nil},
	// TQ2_0: qs 64 bytes @0 (2 bits a code), d f16 @64.
	TQ2_0: {"TQ2_0", 256, 66, Bounds{Range{-1, 2}, Range{1, 1}, 0, 256, mostHalf},
		decodeTQ2_0, encodeTQ2_0, &sizing{d: 64}, nil},
	// Q1_0: d f16 @0, 16 bytes @2: bit j%8 of byte j/8 chooses d or -d.
	Q1_0: {"Q1_0", 128, 18, Bounds{Range{-1, 1}, Range{1, 1}, 0, 128, mostHalf},
		decodeQ1_0, encodeQ1_0, &sizing{}, nil},
	// Q2_0: d f16 @0, 16 bytes @2: bits 2·(j%4) of byte j/4. y = (q-1)·d.
	Q2_0: {"Q2_0", 64, 18, Bounds{Range{-1, 2}, Range{1, 1}, 0, 64, mostHalf},
		decodeQ2_0, encodeQ2_0, &sizing{}, nil},

	// Four-bit floats: sign, 2 bits of exponent, 1 of mantissa.
	//
	// MXFP4: e u8 @0, the block's scale 2^(e-127), 16 bytes of nibbles @1. y = 2^(e-128)·fp4Doubled[q].
	MXFP4: {"MXFP4", 32, 17, Bounds{Range{-12, 12}, Range{1, 1}, 0, 32, 0x1.8p127},
		decodeMXFP4, encodeMXFP4, &sizing{get: runMXFP4, one: oneMXFP4, random: randomMXFP4}, nil},
	// NVFP4, 4 sub-blocks of 16: 4 scales @0 (unsigned E4M3), then per sub-block 8 bytes of nibbles @4.
	NVFP4: {"NVFP4", 64, 36, Bounds{Range{-12, 12}, Range{1, 1}, 0, 16, 6 * 448},
		decodeNVFP4, encodeNVFP4, &sizing{get: runNVFP4, one: oneNVFP4, random: randomNVFP4}, nil},
}
