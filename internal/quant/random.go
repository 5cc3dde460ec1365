package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// Random fills dst with blocks of type t whose values are random, with a mean of about 0 and the standard deviation
// dev: random bits as codes, and scales that give dev. Plain numbers are normally distributed.
func Random(t Type, dst []byte, dev float64, r *rand.Rand) error {
	if !t.Known() || len(dst)%t.Bytes() != 0 {
		return fmt.Errorf("%s: %d bytes are not whole blocks", t, len(dst))
	}
	switch f := &formats[t]; {
	case f.size != nil && f.size.random != nil:
		f.size.random(dst, dev, r)
		return nil
	case f.size != nil:
		return f.size.blocks(t, dst, dev, r)
	case f.plain != nil:
		values := make([]float32, len(dst)/t.Bytes())
		for i := range values {
			values[i] = float32(dev * r.NormFloat64())
		}
		f.plain(dst, values)
		return nil
	}
	return fmt.Errorf("%s: cannot make random values of this type", t)
}

// blocks fills blocks with scales around 1, measures the values that they decode to, and corrects the scales.
func (f *sizing) blocks(t Type, dst []byte, dev float64, r *rand.Rand) error {
	randomBits(dst, r)
	n := len(dst) / t.Bytes()
	scale := make([]float64, n)
	set := func(unit float64) {
		for i, s := range scale {
			f.set(dst[i*t.Bytes():], s*unit, s*unit*f.centre)
		}
	}
	for i := range scale {
		scale[i] = 0.75 + 0.5*r.Float64()
		if f.min == 0 && r.Uint64()&1 == 0 { // codes from -8 to 7 have a mean below 0
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

// set stores the scale of a block, and its offset.
func (f *sizing) set(block []byte, scale, min float64) {
	if f.put != nil {
		f.put(block, F32ToF16(float32(scale)))
		return
	}
	binary.LittleEndian.PutUint16(block[f.d:], F32ToF16(float32(scale)))
	if f.min > 0 {
		binary.LittleEndian.PutUint16(block[f.min:], F32ToF16(float32(min)))
	}
}

const meanSquareE2M1 = 137.0 / 16 // of random codes

// randomMXFP4 gives all blocks the scale, a power of two, that comes nearest to dev.
func randomMXFP4(dst []byte, dev float64, r *rand.Rand) {
	randomBits(dst, r)
	exponent := math.Round(math.Log2(dev / math.Sqrt(meanSquareE2M1)))
	for i := 0; i < len(dst); i += 17 {
		dst[i] = byte(min(max(exponent+127, 1), 250))
	}
}

// randomNVFP4 chooses at random between the two scales next to the right one.
func randomNVFP4(dst []byte, dev float64, r *rand.Rand) {
	randomBits(dst, r)
	below := belowUE4M3(dev / math.Sqrt(meanSquareE2M1))
	for i := 0; i < len(dst); i += 36 {
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
