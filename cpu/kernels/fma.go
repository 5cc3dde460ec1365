package kernels

import "math"

// fma32 is a·b+c rounded once, as the FMA instructions do.
//
// The product of two float32 is exact in float64; the sum is rounded to odd there: if it is inexact, its last bit
// is set. Rounding that to float32 is then right, because 53 ≥ 2·24+2 (Boldo, Melquiond, “Emulation of a FMA and
// correctly rounded sums”, 2008).
func fma32(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	t := s - p
	lost := (p - (s - t)) + (q - t) // Knuth's two-sum: s + lost = p + q exactly
	bits := math.Float64bits(s)
	if lost != 0 && bits&1 == 0 && s-s == 0 {
		if lost > 0 == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
