package quant

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// valueF16 is the definition of a finite half, in float64.
func valueF16(h uint16) float64 {
	exponent, mantissa := int(h>>10&31), float64(h&0x3ff)
	x := math.Ldexp(1024+mantissa, exponent-25)
	if exponent == 0 {
		x = math.Ldexp(mantissa, -24)
	}
	if h>>15 == 1 {
		x = -x
	}
	return x
}

func TestF16ToF32(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := F16ToF32(h)
		switch magnitude := h & 0x7fff; {
		case magnitude > 0x7c00:
			require.True(t, f != f, "%#04x", h)
			require.Equal(t, h|0x200, F32ToF16(f), "NaN %#04x becomes quiet and keeps its payload", h)
			continue
		case magnitude == 0x7c00:
			require.True(t, math.IsInf(float64(f), 1-2*int(h>>15)), "%#04x", h)
		default:
			require.Equal(t, math.Float64bits(valueF16(h)), math.Float64bits(float64(f)), "%#04x", h)
		}
		require.Equal(t, h, F32ToF16(f), "%#04x", h)
	}
}

// TestF32ToF16Rounding checks every pair of neighbours: half way goes to the even one, and one float32 step to
// either side of half way goes to the nearer. Rounding is monotonic, so this settles every float32.
func TestF32ToF16Rounding(t *testing.T) {
	for h := uint16(0); h < 0x7c00; h++ {
		below, above := valueF16(h), valueF16(h+1)
		if h == 0x7bff {
			above = 65536 // where the infinity would be
		}
		middle := float32((below + above) / 2)
		for _, sign := range []float32{1, -1} {
			bit := uint16(math.Float32bits(sign) >> 16 & 0x8000)
			require.Equal(t, bit|(h+h&1), F32ToF16(sign*middle), "half way above %#04x", h)
			require.Equal(t, bit|h, F32ToF16(sign*math.Nextafter32(middle, 0)), "below half way above %#04x", h)
			require.Equal(t, bit|h+1, F32ToF16(sign*math.Nextafter32(middle, 1e30)), "past half way above %#04x", h)
		}
	}
	require.Equal(t, uint16(0x7c00), F32ToF16(math.MaxFloat32))
	require.Equal(t, uint16(0x7c00), F32ToF16(float32(math.Inf(1))))
	require.Equal(t, uint16(0x8000), F32ToF16(-math.SmallestNonzeroFloat32))
	require.Equal(t, uint16(0xfe00), F32ToF16(math.Float32frombits(0xff800001)))
}

func TestBF16(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := BF16ToF32(h)
		require.Equal(t, uint32(h)<<16, math.Float32bits(f))
		if f != f {
			require.Equal(t, h|0x40, F32ToBF16(f), "NaN %#04x", h)
			continue
		}
		require.Equal(t, h, F32ToBF16(f), "%#04x", h)
		if h&0x7f80 == 0x7f80 {
			continue // an infinity has no neighbour above
		}
		middle := uint32(h)<<16 | 0x8000
		require.Equal(t, h+h&1, F32ToBF16(math.Float32frombits(middle)), "half way above %#04x", h)
		require.Equal(t, h, F32ToBF16(math.Float32frombits(middle-1)), "below half way above %#04x", h)
		require.Equal(t, h+1, F32ToBF16(math.Float32frombits(middle+1)), "past half way above %#04x", h)
	}
}
