package kernels

import "github.com/sluice-ai/sluice/internal/quant"

// unpack takes a tile apart; formats.go of internal/quant and layout.go describe the bytes.
func (b *block) unpack(t quant.Type, w []byte) {
	switch t {
	case quant.Q8_0:
		b.halves(&b.d, w)
		for i, q := range w[32:544] {
			r, k := lane(i)
			b.q[r][k] = int8(q)
		}
	case quant.Q4_0:
		b.halves(&b.d, w)
		for i, q := range w[32:288] {
			r, k := lane(i)
			b.q[r][k], b.q[r][k+16] = int8(q&15)-8, int8(q>>4)-8
		}
	case quant.Q4_K:
		b.scales(w)
		b.nibbles(w[256:2304])
	case quant.Q5_K:
		b.scales(w)
		b.nibbles(w[768:2816])
		for i, high := range w[256:768] {
			r, k := lane(i)
			for s := range 8 {
				b.q[r][32*s+k] |= int8(high>>s&1) << 4
			}
		}
	case quant.Q6_K:
		b.unpackQ6_K(w)
	default:
		panic("kernels: no twin for " + t.String())
	}
}

// lane says whose byte lies at i: row r, byte k of the row's field.
func lane(i int) (r, k int) { return i / 4 % TileRows, i/64*4 + i%4 }

func (b *block) halves(dst *[TileRows]float32, w []byte) {
	for r := range dst {
		dst[r] = half(w[2*r:])
	}
}

// nibbles unpacks the codes of Q4_K: byte k of a row has codes of sub-blocks 2·(k/32) and 2·(k/32)+1.
func (b *block) nibbles(w []byte) {
	for i, q := range w {
		r, k := lane(i)
		at := k/32*64 + k%32
		b.q[r][at], b.q[r][at+32] = int8(q&15), int8(q>>4)
	}
}

// scales unpacks d, dmin, and the scales and minima of Q4_K and Q5_K.
func (b *block) scales(w []byte) {
	b.halves(&b.d, w)
	b.halves(&b.dmin, w[32:])
	for r := range TileRows {
		var packed [12]byte
		gather(packed[:], w[64:256], 4, r)
		scales, mins := splitScales(&packed)
		for s := range 8 {
			b.scale[r][2*s], b.scale[r][2*s+1] = int32(scales[s]), int32(scales[s])
			b.low[r][s] = int32(mins[s])
		}
	}
}

// unpackQ6_K: byte k of ql has the low nibbles of runs h and h+2 of 32 codes, h = 4·(k/64) + k/32%2; byte k of qh
// has bits 4-5 of runs 4·(k/32)+j in bits 2j.
func (b *block) unpackQ6_K(w []byte) {
	for i, q := range w[:2048] {
		r, k := lane(i)
		at := k/64*128 + k%64
		b.q[r][at], b.q[r][at+64] = int8(q&15), int8(q>>4)
	}
	for i, high := range w[2048:3072] {
		r, k := lane(i)
		for j := range 4 {
			q := &b.q[r][k/32*128+32*j+k%32]
			*q = (*q | int8(high>>(2*j)&3)<<4) - 32
		}
	}
	for i, s := range w[3072:3328] {
		b.scale[i%TileRows][i/TileRows] = int32(int8(s))
	}
	b.halves(&b.d, w[3328:])
}
