package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// scaleFields says where a block keeps the half-precision numbers that size its values. All its other bits may
// be anything.
type scaleFields struct {
	d      int     // offset of the scale
	min    int     // offset of the number that moves values, 0 where there is none
	centre float64 // what min is in scales, so that random codes have a mean of 0
}

// scales finds the fields of t. The others have no such field: numbers, exponents, and formats for activations.
func scales(t Type) (scaleFields, bool) {
	switch t {
	case Q4_0, Q5_0, Q8_0, IQ4_NL, IQ4_XS, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ1_S, IQ1_M, Q1_0, Q2_0:
		return scaleFields{d: 0}, true
	case Q4_1: // codes have a mean of 7.5
		return scaleFields{d: 0, min: 2, centre: -7.5}, true
	case Q5_1:
		return scaleFields{d: 0, min: 2, centre: -15.5}, true
	case Q2_K: // scales and minima of sub-blocks have the same mean
		return scaleFields{d: 80, min: 82, centre: 1.5}, true
	case Q3_K:
		return scaleFields{d: 108}, true
	case Q4_K:
		return scaleFields{d: 0, min: 2, centre: 7.5}, true
	case Q5_K:
		return scaleFields{d: 0, min: 2, centre: 15.5}, true
	case Q6_K:
		return scaleFields{d: 208}, true
	case TQ1_0:
		return scaleFields{d: 52}, true
	case TQ2_0:
		return scaleFields{d: 64}, true
	}
	return scaleFields{}, false
}

// Random fills dst with blocks of type t whose values are random, with a mean of about 0 and the standard deviation
// dev: random bits for the codes, and scales to suit. Numbers without codes are normally distributed.
func Random(t Type, dst []byte, dev float64, r *rand.Rand) error {
	if !t.Known() || len(dst)%t.Bytes() != 0 {
		return fmt.Errorf("%s: %d bytes are not whole blocks", t, len(dst))
	}
	switch fields, ok := scales(t); {
	case ok:
		return fields.random(t, dst, dev, r)
	case t == MXFP4:
		randomMXFP4(dst, dev, r)
		return nil
	case t == NVFP4:
		randomNVFP4(dst, dev, r)
		return nil
	case t == F32 || t == F16 || t == BF16:
		values := make([]float32, len(dst)/t.Bytes())
		for i := range values {
			values[i] = float32(dev * r.NormFloat64())
		}
		return Quantize(t, dst, values)
	}
	return fmt.Errorf("%s: cannot make random values of this type", t)
}

// random sets scales around 1, measures what they decode to, and corrects them.
func (f scaleFields) random(t Type, dst []byte, dev float64, r *rand.Rand) error {
	randomBits(dst, r)
	n := len(dst) / t.Bytes()
	scale := make([]float64, n)
	set := func(unit float64) {
		for i, s := range scale {
			block := dst[i*t.Bytes():]
			if t == IQ1_M {
				putScaleIQ1_M(block, F32ToF16(float32(s*unit)))
				continue
			}
			binary.LittleEndian.PutUint16(block[f.d:], F32ToF16(float32(s*unit)))
			if f.min > 0 {
				binary.LittleEndian.PutUint16(block[f.min:], F32ToF16(float32(s*unit*f.centre)))
			}
		}
	}
	for i := range scale {
		scale[i] = 0.75 + 0.5*r.Float64()
		if f.min == 0 && r.Uint64()&1 == 0 { // codes from -8 to 7 have a mean of their own
			scale[i] = -scale[i]
		}
	}
	set(1)
	values := make([]float32, n*t.Block())
	if err := Dequantize(t, values, dst); err != nil {
		return err
	}
	var squares float64
	for _, x := range values {
		squares += float64(x) * float64(x)
	}
	if squares > 0 {
		set(dev / math.Sqrt(squares/float64(len(values))))
	}
	return nil
}

const meanSquareE2M1 = 137.0 / 16 // of random codes

// randomMXFP4 gives all blocks the power of two that comes nearest.
func randomMXFP4(dst []byte, dev float64, r *rand.Rand) {
	randomBits(dst, r)
	exponent := math.Round(math.Log2(dev / math.Sqrt(meanSquareE2M1)))
	for i := 0; i < len(dst); i += MXFP4.Bytes() {
		dst[i] = byte(min(max(exponent+127, 1), 250))
	}
}

// randomNVFP4 chooses between the two scales next to the right one.
func randomNVFP4(dst []byte, dev float64, r *rand.Rand) {
	randomBits(dst, r)
	below := belowUE4M3(dev / math.Sqrt(meanSquareE2M1))
	for i := 0; i < len(dst); i += NVFP4.Bytes() {
		for s := range 4 {
			dst[i+s] = min(below+byte(r.IntN(2)), 0x7e)
		}
	}
}

func randomBits(dst []byte, r *rand.Rand) {
	for len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, r.Uint64())
		dst = dst[8:]
	}
	for i := range dst {
		dst[i] = byte(r.Uint32())
	}
}
