package null

import (
	"encoding/binary"
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

func halfOf(v float32) uint16 { return quant.F32ToF16(v) }

func ofHalf(h uint16) float32 { return quant.F16ToF32(h) }

// inBlock is the values of a quantised row that share a scale.
const inBlock = 32

// quantise converts values, a multiple of 256, to signed bytes. Behind these lie, for each 32 values, the float32 scale
// amax/127, and as int16 the sums of the first and the last 16 bytes. If a value is not finite, the scale is not.
func quantise(to []byte, v []float32) {
	order := binary.LittleEndian
	for b := 0; b < len(v); b += inBlock {
		amax := uint32(0) // magnitudes are ordered as their bits are, and NaN is the largest
		for _, x := range v[b : b+inBlock] {
			amax = max(amax, math.Float32bits(x)&^(1<<31))
		}
		most, factor, sums := math.Float32frombits(amax), float32(0), [2]int16{}
		if most > 0 && !math.IsInf(float64(most), 0) {
			factor = 127 / most
		}
		for i, x := range v[b : b+inBlock] {
			q := int8(0)
			if factor > 0 {
				q = int8(math.RoundToEven(float64(x * factor)))
			}
			to[b+i] = byte(q)
			sums[i/16] += int16(q)
		}
		scale := to[len(v)+b/inBlock*8:]
		order.PutUint32(scale, math.Float32bits(most*(1./127)))
		order.PutUint16(scale[4:], uint16(sums[0]))
		order.PutUint16(scale[6:], uint16(sums[1]))
	}
}

// dequantise converts the bytes back to float32.
func dequantise(to []float32, from []byte) {
	for i := range to {
		scale := from[len(to)+i/inBlock*8:]
		to[i] = float32(int8(from[i])) * math.Float32frombits(binary.LittleEndian.Uint32(scale))
	}
}
