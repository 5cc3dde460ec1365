package backend

import (
	"math"
	"math/bits"
)

// Weights of draws are whole numbers: their sums are exact in any order, and a device computes the same weights without
// floating point, from the bits of logits.
const (
	// WeightOne is the weight of the likeliest token.
	WeightOne = 1 << 42
	// MaxDrawn is the largest number of tokens to draw from: their weights add up to less than 2⁶⁴.
	MaxDrawn = 1<<22 - 1
	// AllShare is a share of all, that nothing reaches before the end.
	AllShare = math.MaxUint32

	_ uint64 = MaxDrawn * WeightOne // it fits
)

// DrawScale is log₂ e / temperature, as Factor·2^(Shift-56). The highest bit of Factor is set.
type DrawScale struct {
	Factor uint32
	Shift  int32
}

// ScaleOf returns the scale of a temperature above 0.
func ScaleOf(temp float64) DrawScale {
	const most = 0x1p156 // colder makes no difference: float32s that differ are infinitely far apart
	part, exp := math.Frexp(min(math.Log2E/temp, most))
	return DrawScale{Factor: uint32(part * (1 << 32)), Shift: int32(24 + exp)}
}

// Weigher weighs tokens in comparison with the likeliest one, under a temperature.
type Weigher struct {
	best   int64
	scale  float64
	factor uint64
}

// NewWeigher returns one that gives WeightOne to the logit best.
func NewWeigher(best float32, s DrawScale) Weigher {
	w := Weigher{scale: math.Ldexp(1, int(s.Shift)), factor: uint64(s.Factor)}
	w.best = w.units(best)
	return w
}

// units returns a logit in units of 2^-Shift, rounded towards 0; the factor is a power of two, so the product itself is
// exact. From 2⁵⁵ on, where the neighbours of a float32 are at least 2³² units apart, only the order is kept, and that
// distance: a logit so far below the likeliest has no weight.
func (w *Weigher) units(x float32) int64 {
	if u := float64(x) * w.scale; math.Abs(u) < 1<<55 {
		return int64(u)
	}
	u := int64(math.Float32bits(x)&(1<<31-1)) << 32
	if x < 0 {
		return -u
	}
	return u
}

// Surprise returns log₂ of how many times less likely than the best a logit is, which is not above it, in units of
// 2⁻⁵⁶, to about 2⁻²⁴. A lower logit never has a lower surprise.
func (w *Weigher) Surprise(logit float32) uint64 {
	return min(uint64(w.best)-uint64(w.units(logit)), math.MaxUint32) * w.factor
}

// WeightOf returns 2^-surprise as a weight, rounded down: 0 above 42 bits. The error is below 2⁻²⁹ of the weight, plus
// 1. A greater surprise never has a greater weight.
func WeightOf(surprise uint64) uint64 {
	if surprise >= 43<<56 {
		return 0
	}
	fraction := surprise >> 24 & math.MaxUint32
	// 2^-(i/32 + r) with r < 1/32: 1 - 2^-r by its series.
	r := fraction & (1<<27 - 1)
	less := series[2] - r*series[3]>>32
	less = series[1] - r*less>>32
	less = r * (series[0] - r*less>>32) >> 32
	power := roots[fraction>>27&31]
	return (power - power*less>>32) << 11 >> (surprise >> 56)
}

// series are Taylor's terms (ln 2)ⁿ/n! from n = 1 on, in units of 2⁻³².
var series = [4]uint64{2977044472, 1031764991, 238388332, 41309550}

// roots are the numbers 2^(31 - i/32).
var roots = [32]uint64{
	2147483648, 2101467502, 2056437387, 2012372174, 1969251188, 1927054196, 1885761398, 1845353420,
	1805811301, 1767116489, 1729250827, 1692196547, 1655936265, 1620452965, 1585730000, 1551751076,
	1518500250, 1485961921, 1454120821, 1422962010, 1392470869, 1362633090, 1333434672, 1304861917,
	1276901417, 1249540052, 1222764986, 1196563654, 1170923762, 1145833280, 1121280436, 1097253708,
}

// ShareOf returns a probability in units of 2⁻³², rounded up: AllShare from 1 on.
func ShareOf(p float32) uint32 {
	if p >= 1 {
		return AllShare
	}
	return uint32(math.Ceil(float64(p) * (1 << 32))) // at most 2³²-2⁸
}

// LeastSum returns the least sum of weights that is a share of all.
func LeastSum(share uint32, all uint64) uint64 {
	high, low := bits.Mul64(all, uint64(share))
	least := high<<32 | low>>32
	if low&math.MaxUint32 != 0 {
		least++
	}
	return least
}

// SurpriseOf returns -log₂ p in units of 2⁻⁵⁶, right to about 2⁻³⁰; for p of 0 more than any token has.
func SurpriseOf(p float32) uint64 {
	if p <= 0 {
		return math.MaxUint64
	}
	part, exp := math.Frexp(float64(min(p, 1)))
	x := uint64(part*(1<<53)) << 11 // from 1 to 2, in units of 2⁻⁶³: each squaring gives one bit of the logarithm
	log := uint64(0)
	for range 32 {
		log <<= 1
		if x, _ = bits.Mul64(x, x); x>>63 != 0 {
			log |= 1
		} else {
			x <<= 1
		}
	}
	return uint64(1-exp)<<56 - log<<24
}

// Random returns number index of the random numbers of a position under a seed: a hash, so that nothing has to be
// carried from token to token. Number 0 picks the token.
func Random(seed, position, index uint64) uint64 { return mix(mix(mix(seed)^position) ^ index) }

// mix is the output function of SplitMix64, Steele et al., doi:10.1145/2660193.2660195: a bijection in which each
// bit of the input flips about half of the output's.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
