package sample

import (
	"math"
	"math/bits"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Exponentials and logarithms that give the same bits on every machine. The library's use fused multiply-add where a
// processor has it, and so may a compiler; these round after each operation, which float64(a*b) demands in Go.

// exp returns eˣ for x ≤ 0, with a relative error of at most 2⁻⁴⁵; below -708 it returns 0.
func exp(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01 // 32 bits of ln 2, so that k·ln2Hi is exact
		ln2Lo = 1.90821492927058770002e-10
	)
	if x < -708 {
		return 0
	}
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	r := (x - float64(k*ln2Hi)) - float64(k*ln2Lo) // |r| ≤ ln 2 / 2
	r2 := float64(r * r)
	// Taylor's series to r¹¹, even and odd powers apart to shorten the chain of operations.
	even := 1.0 / 3628800
	even = float64(even*r2) + 1.0/40320
	even = float64(even*r2) + 1.0/720
	even = float64(even*r2) + 1.0/24
	even = float64(even*r2) + 1.0/2
	even = float64(even*r2) + 1
	odd := 1.0 / 39916800
	odd = float64(odd*r2) + 1.0/362880
	odd = float64(odd*r2) + 1.0/5040
	odd = float64(odd*r2) + 1.0/120
	odd = float64(odd*r2) + 1.0/6
	odd = float64(odd*r2) + 1
	return (even + float64(odd*r)) * math.Float64frombits(uint64(1023+int64(k))<<52) // ·2ᵏ
}

// log returns the natural logarithm of x, which must be finite and at least 0.
func log(x float64) float64 {
	if x <= 0 {
		return math.Inf(-1)
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	// ln m = 2·artanh s with s = (m-1)/(m+1), |s| < 0.172.
	s := (m - 1) / (m + 1)
	s2, sum := float64(s*s), 0.0
	for n := 23.0; n >= 1; n -= 2 {
		sum = float64(sum*s2) + 1/n
	}
	return float64(float64(e)*math.Ln2) + float64(2*s*sum)
}

// pow returns xʸ for x in [0, 1] and y ≥ 0.
func pow(x, y float64) float64 {
	if y == 0 {
		return 1
	}
	return exp(y * log(x))
}

// Indices of the random numbers of one position.
const (
	drawToken uint64 = iota
	drawXTC
)

// draws yields the random numbers of a position.
type draws struct{ seed, position uint64 }

// uniform returns a number in [0, 1), with 53 bits.
func (d draws) uniform(index uint64) float64 {
	return float64(backend.Random(d.seed, d.position, index)>>11) * 0x1p-53
}

// below returns a number below n, which picks the token.
func (d draws) below(n uint64) uint64 {
	point, _ := bits.Mul64(backend.Random(d.seed, d.position, drawToken), n)
	return point
}
