package quant

import "math"

// AddToy adds a format as its row would: 32 values in 18 bytes, d f16 @16, 16 bytes of nibbles @0, code j in the low
// half of byte j%16 for j < 16, else in the high one. y = (q-8)·d.
func AddToy() (toy Type, remove func()) {
	toy = Type(len(formats))
	formats = append(formats, format{"TOY", 32, 18, Bounds{Range{-8, 7}, Range{1, 1}, 0, 32, 7 * mostHalf},
		func(dst []float32, src []byte) {
			for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
				for j, q := range src[:16] {
					dst[j] = float32(int(q&15)-8) * half(src[16:])
					dst[j+16] = float32(int(q>>4)-8) * half(src[16:])
				}
			}
		},
		func(dst []byte, b *target) {
			most := 0.0
			for _, x := range b.x[:32] {
				most = math.Max(most, math.Abs(x))
			}
			d := unitHalf(most / 7)
			for j := range 16 {
				low, high := level(b.x[j]/max(d, 0x1p-24)+8, 15), level(b.x[j+16]/max(d, 0x1p-24)+8, 15)
				dst[j] = byte(low) | byte(high)<<4
			}
			putHalf(dst[16:], d)
		}, &sizing{d: 16}, nil})
	return toy, func() { formats = formats[:toy] }
}
