package diffuse

import "math"

// Guided is the velocity of a prompt, pushed away from that of another one: v = p + strength·(p − other). Bounded, it
// is no longer than p. 1 or less leaves p as it is, and the other need not be computed.
func Guided(p, other []float32, strength float64, bounded bool) []float32 {
	if strength <= 1 {
		return p
	}
	v, long, short := make([]float32, len(p)), 0.0, 0.0
	for i := range v {
		v[i] = float32(float64(p[i]) + strength*(float64(p[i])-float64(other[i])))
		long, short = long+float64(float64(v[i])*float64(v[i])), short+float64(float64(p[i])*float64(p[i]))
	}
	if bounded && long > short {
		scale := math.Sqrt(short / long)
		for i := range v {
			v[i] = float32(float64(v[i]) * scale)
		}
	}
	return v
}
