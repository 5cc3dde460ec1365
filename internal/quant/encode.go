package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// HasEncoder says whether Quantize and QuantizeRow write the type.
func HasEncoder(t Type) bool {
	return t.Known() && (formats[t].plain != nil || formats[t].encode != nil)
}

// Quantize encodes whole rows, with equal weight for all values. F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 give the
// bytes of ggml's reference quantiser; the other formats search for the least squared error. Values in blocks must be
// finite and at most Bounds.Most in magnitude; others are errors.
func Quantize(t Type, dst []byte, src []float32) error { return QuantizeRow(t, dst, src, nil) }

// QuantizeRow encodes one row with a weight for each column: the squared error of column i counts importance[i] times,
// usually the mean square of what the column is multiplied by. Importances are not negative; nil stands for equal ones.
// Plain numbers and Q8_0, whose codes leave no choice, ignore it.
func QuantizeRow(t Type, dst []byte, src, importance []float32) error {
	if err := sameLength(t, len(src), len(dst)); err != nil {
		return err
	}
	if !HasEncoder(t) {
		return fmt.Errorf("%s has no encoder: choose a type that has one, such as Q4_K or Q8_0", t)
	}
	if err := checkImportance(len(src), importance); err != nil {
		return err
	}
	if plain := formats[t].plain; plain != nil {
		plain(dst, src)
		return nil
	}
	return encodeBlocks(t, dst, src, importance)
}

func encodeF32(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

func encodeF16(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(x))
	}
}

func encodeBF16(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
	}
}

func checkImportance(n int, importance []float32) error {
	if importance != nil && len(importance) != n {
		return fmt.Errorf("%d importances for a row of %d values: give one for each", len(importance), n)
	}
	for i, w := range importance {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("importance %d is %v: it must be finite and not negative", i, w)
		}
	}
	return nil
}

func encodeBlocks(t Type, dst []byte, src, importance []float32) error {
	f := &formats[t]
	for i, x := range src {
		if !(abs(x) <= f.bounds.Most) {
			return fmt.Errorf("value %d is %v: %s holds numbers up to %.3g", i, x, t, f.bounds.Most)
		}
	}
	var b target
	for n := f.block; len(src) > 0; dst, src = dst[f.bytes:], src[n:] {
		var weights []float32
		if importance != nil {
			weights, importance = importance[:n], importance[n:]
		}
		b.load(src[:n], weights)
		f.encode(dst[:f.bytes], &b)
	}
	return nil
}

func putHalf(b []byte, x float64) { binary.LittleEndian.PutUint16(b, F32ToF16(float32(x))) }

// unitHalf is asHalf for a number whose multiples are used: it is not rounded to 0, since even the least half has
// useful multiples.
func unitHalf(x float64) float64 {
	if h := asHalf(x); h != 0 || x == 0 {
		return h
	}
	return math.Copysign(0x1p-24, x)
}

// asHalf is the nearest finite number that a half can hold.
func asHalf(x float64) float64 {
	return float64(F16ToF32(F32ToF16(float32(max(-mostHalf, min(mostHalf, x))))))
}
