package quant

func decodeQ2_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[84:] {
		scales, qs := src[:16], src[16:80]
		d, dmin := half(src[80:]), half(src[82:])
		for s := range 16 { // sub-blocks of 16: run s/2%4 of 32 in half s/8, its first or second part
			scale := float32(d * float32(scales[s]&15))
			low := float32(dmin * float32(scales[s]>>4))
			shift := 2 * (s / 2 % 4)
			y := dst[16*s:]
			for j, q := range qs[32*(s/8)+16*(s%2):][:16] {
				y[j] = float32(scale*float32(q>>shift&3)) - low
			}
		}
	}
}

func decodeQ3_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[110:] {
		hmask, qs := src[:32], src[32:96]
		d, scales := half(src[108:]), scalesQ3_K(src[96:108])
		for s := range 16 {
			scale := d * float32(scales[s])
			shift, bit := 2*(s/2%4), byte(1)<<(s/2)
			mask := hmask[16*(s%2):]
			y := dst[16*s:]
			for j, q := range qs[32*(s/8)+16*(s%2):][:16] {
				code := int(q >> shift & 3)
				if mask[j]&bit == 0 {
					code -= 4
				}
				y[j] = scale * float32(code)
			}
		}
	}
}

// scalesQ3_K unpacks 16 scales in [-32, 31] from 12 bytes.
func scalesQ3_K(packed []byte) (scales [16]int8) {
	for i := range scales {
		low := packed[i%8] >> (4 * (i / 8)) & 15
		high := packed[8+i%4] >> (2 * (i / 4)) & 3
		scales[i] = int8(low|high<<4) - 32
	}
	return scales
}

func decodeQ4_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[144:] {
		d, dmin := half(src), half(src[2:])
		scales, mins := UnpackScales((*[12]byte)(src[4:]))
		for s := range 8 {
			scale, low := float32(d*float32(scales[s])), float32(dmin*float32(mins[s]))
			y := dst[32*s:]
			for j, q := range src[16+32*(s/2):][:32] {
				y[j] = float32(scale*float32(q>>(4*(s%2))&15)) - low
			}
		}
	}
}

func decodeQ5_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[176:] {
		d, dmin := half(src), half(src[2:])
		scales, mins := UnpackScales((*[12]byte)(src[4:]))
		high := src[16:48]
		for s := range 8 {
			scale, low := float32(d*float32(scales[s])), float32(dmin*float32(mins[s]))
			y := dst[32*s:]
			for j, q := range src[48+32*(s/2):][:32] {
				code := q>>(4*(s%2))&15 | high[j]>>s&1<<4
				y[j] = float32(scale*float32(code)) - low
			}
		}
	}
}

// UnpackScales splits the 12 packed bytes of a Q4_K or Q5_K block into 8 scales and 8 minima in [0, 63].
func UnpackScales(packed *[12]byte) (scales, mins [8]uint8) {
	for i := range 4 {
		scales[i], mins[i] = packed[i]&63, packed[i+4]&63
		scales[i+4] = packed[i+8]&15 | packed[i]>>6<<4
		mins[i+4] = packed[i+8]>>4 | packed[i+4]>>6<<4
	}
	return scales, mins
}

func decodeQ6_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[210:] {
		scales, d := src[192:208], half(src[208:])
		for r := range 8 { // runs of 32: four in each half of 128
			ql, qh := src[64*(r/4)+32*(r%2):], src[128+32*(r/4):]
			nibble, pair := 4*(r%4/2), 2*(r%4)
			y := dst[32*r:]
			for j := range 32 {
				code := int(ql[j]>>nibble&15) | int(qh[j]>>pair&3)<<4
				scale := float32(d * float32(int8(scales[2*r+j/16])))
				y[j] = scale * float32(code-32)
			}
		}
	}
}
