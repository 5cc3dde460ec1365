package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Quantize encodes src to dst as ggml's reference quantiser does, for F32, F16, BF16, Q8_0 and Q4_0.
// The float formats round to nearest even. In the block formats NaN and infinity have no code and are errors.
func Quantize(t Type, dst []byte, src []float32) error {
	if err := sameLength(t, len(src), len(dst)); err != nil {
		return err
	}
	switch t {
	case F32:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
		return nil
	case F16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(x))
		}
		return nil
	case BF16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
		}
		return nil
	case Q8_0:
		return eachBlock(t, dst, src, encodeQ8_0)
	case Q4_0:
		return eachBlock(t, dst, src, encodeQ4_0)
	}
	return fmt.Errorf("%s has no encoder: use F32, F16, BF16, Q8_0 or Q4_0", t)
}

func eachBlock(t Type, dst []byte, src []float32, encode func(dst []byte, src []float32)) error {
	for i, x := range src {
		if x-x != 0 { // only NaN and the infinities are not zero from themselves
			return fmt.Errorf("value %d is %v: %s holds finite numbers only", i, x, t)
		}
	}
	for n, size := t.Block(), t.Bytes(); len(src) > 0; dst, src = dst[size:], src[n:] {
		encode(dst[:size], src[:n])
	}
	return nil
}

func encodeQ8_0(dst []byte, src []float32) {
	var most float32
	for _, x := range src {
		most = max(most, float32(math.Abs(float64(x))))
	}
	d := most / 127
	binary.LittleEndian.PutUint16(dst, F32ToF16(d))
	inverse := reciprocal(d)
	for j, x := range src {
		dst[2+j] = byte(int8(math.Round(float64(x * inverse)))) // ties away from zero, as roundf
	}
}

// encodeQ4_0 maps the value of largest magnitude to code 0, which stands for -8.
func encodeQ4_0(dst []byte, src []float32) {
	var most, signed float32
	for _, x := range src {
		if a := float32(math.Abs(float64(x))); a > most {
			most, signed = a, x
		}
	}
	d := signed / -8
	binary.LittleEndian.PutUint16(dst, F32ToF16(d))
	inverse := reciprocal(d)
	code := func(x float32) byte { return byte(min(15, int(float32(x*inverse)+8.5))) }
	for j := range 16 {
		dst[2+j] = code(src[j]) | code(src[j+16])<<4
	}
}

// reciprocal is 1/d, and 0 for a block of zeros.
func reciprocal(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}
