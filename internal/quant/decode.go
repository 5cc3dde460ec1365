package quant

import (
	"encoding/binary"
	"math"
)

// The decoders round every operation to float32: an explicit conversion forbids the compiler to fuse a product
// with the sum after it, which it may do on some architectures.

func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// Whole reads values of I32, which is no type of weights, but of tables of numbers.
func Whole(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeQ4_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		d := half(src)
		for j, q := range src[2:18] {
			dst[j] = float32(int(q&15)-8) * d
			dst[j+16] = float32(int(q>>4)-8) * d
		}
	}
}

func decodeQ4_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[20:] {
		d, m := half(src), half(src[2:])
		for j, q := range src[4:20] {
			dst[j] = float32(float32(q&15)*d) + m
			dst[j+16] = float32(float32(q>>4)*d) + m
		}
	}
}

func decodeQ5_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[22:] {
		d, high := half(src), binary.LittleEndian.Uint32(src[2:])
		for j, q := range src[6:22] {
			lo, hi := fiveBits(q, high, j)
			dst[j] = float32(int(lo)-16) * d
			dst[j+16] = float32(int(hi)-16) * d
		}
	}
}

func decodeQ5_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[24:] {
		d, m, high := half(src), half(src[2:]), binary.LittleEndian.Uint32(src[4:])
		for j, q := range src[8:24] {
			lo, hi := fiveBits(q, high, j)
			dst[j] = float32(float32(lo)*d) + m
			dst[j+16] = float32(float32(hi)*d) + m
		}
	}
}

// fiveBits joins the two nibbles of byte j with bits j and j+16 of high.
func fiveBits(q byte, high uint32, j int) (lo, hi byte) {
	return q&15 | byte(high>>j&1)<<4, q>>4 | byte(high>>(j+16)&1)<<4
}

func decodeQ8_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[34:] {
		d := half(src)
		for j, q := range src[2:34] {
			dst[j] = float32(int8(q)) * d
		}
	}
}
