package vec

import (
	"math"
	"unsafe"
)

// Block is the number of scores that SoftMax takes: the positions of a KV block.
const Block = 64

// ISA is a set of instructions. Every value gives the same bits; the zero value works everywhere.
type ISA uint8

const (
	Generic ISA = iota // the Go twins
	AVX2               // with FMA and F16C
	AVX512             // F, BW, DQ and VL
	NEON               // of arm64
)

// rows says whether the assembly takes whole rows of 16 elements alone.
func (isa ISA) rows() bool { return isa == AVX2 || isa == NEON }

// whole is how many of n elements the assembly computes; a twin computes the rest. AVX-512 has masks, and takes all.
func (isa ISA) whole(n int) int {
	switch isa {
	case Generic:
		return 0
	case AVX2, NEON:
		return n &^ (Lanes - 1)
	}
	return n
}

func at[T float32 | uint16 | int8 | byte](x []T) *T { return unsafe.SliceData(x) }

// Sum adds the elements of x.
func (isa ISA) Sum(x []float32) float32 {
	n := isa.whole(len(x))
	if isa == AVX512 && n > 0 {
		return sumAVX512(at(x), len(x))
	}
	var l [Lanes]float32
	if n > 0 {
		sumWhole(&l, at(x), n)
	}
	sumTwin(&l, x[n:])
	return tree(&l)
}

// SumSquares adds the squares of the elements of x.
func (isa ISA) SumSquares(x []float32) float32 {
	n := isa.whole(len(x))
	if isa == AVX512 && n > 0 {
		return sumSquaresAVX512(at(x), len(x))
	}
	var l [Lanes]float32
	if n > 0 {
		sumSquaresWhole(&l, at(x), n)
	}
	sumSquaresTwin(&l, x[n:])
	return tree(&l)
}

// Finite says whether x has neither NaN nor an infinity.
func (isa ISA) Finite(x []float32) bool { return isa.Largest(x) <= math.MaxFloat32 }

// Largest is the largest magnitude in x, NaN if x has one.
func (isa ISA) Largest(x []float32) (most float32) {
	n := isa.whole(len(x))
	switch {
	case n == 0:
	case isa == AVX512:
		most = largestAVX512(at(x), n)
	default:
		most = largestWhole(at(x), n)
	}
	return max(most, largestTwin(x[n:]))
}

// Add is y = a + b. As in all that follows, y has the length of its inputs and may be one of them.
func (isa ISA) Add(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		addAVX512(at(y), at(a), at(b), n)
	default:
		addWhole(at(y), at(a), at(b), n)
	}
	addTwin(y[n:], a[n:], b[n:])
}

// Mul is y = a·b, element by element.
func (isa ISA) Mul(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		mulAVX512(at(y), at(a), at(b), n)
	default:
		mulWhole(at(y), at(a), at(b), n)
	}
	mulTwin(y[n:], a[n:], b[n:])
}

// Scale is y = s·x.
func (isa ISA) Scale(y, x []float32, s float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		scaleAVX512(at(y), at(x), s, n)
	default:
		scaleWhole(at(y), at(x), s, n)
	}
	scaleTwin(y[n:], x[n:], s)
}

// Divide is y = x/s.
func (isa ISA) Divide(y, x []float32, s float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		divideAVX512(at(y), at(x), s, n)
	default:
		divideWhole(at(y), at(x), s, n)
	}
	divideTwin(y[n:], x[n:], s)
}

// Merge is acc = α·acc + β·o.
func (isa ISA) Merge(acc, o []float32, alpha, beta float32) {
	o = o[:len(acc)]
	n := isa.whole(len(acc))
	switch {
	case n == 0:
	case isa == AVX512:
		mergeAVX512(at(acc), at(o), alpha, beta, n)
	default:
		mergeWhole(at(acc), at(o), alpha, beta, n)
	}
	mergeTwin(acc[n:], o[n:], alpha, beta)
}

// Rotate turns the points (aᵢ, bᵢ) by the angles of cosᵢ and sinᵢ, in place.
func (isa ISA) Rotate(a, b, cos, sin []float32) {
	b, cos, sin = b[:len(a)], cos[:len(a)], sin[:len(a)]
	n := isa.whole(len(a))
	switch {
	case n == 0:
	case isa == AVX512:
		rotateAVX512(at(a), at(b), at(cos), at(sin), n)
	default:
		rotateWhole(at(a), at(b), at(cos), at(sin), n)
	}
	rotateTwin(a[n:], b[n:], cos[n:], sin[n:])
}

// RotatePairs turns the points (x₂ᵢ, x₂ᵢ₊₁) by the angles of cosᵢ and sinᵢ, in place.
func (isa ISA) RotatePairs(x, cos, sin []float32) {
	cos, sin = cos[:len(x)/2], sin[:len(x)/2]
	n := 0
	if isa != Generic {
		n = len(x) &^ (Lanes - 1)
	}
	if n > 0 {
		rotatePairsWhole(at(x), at(cos), at(sin), n)
	}
	rotatePairsTwin(x[n:], cos[n/2:], sin[n/2:])
}

// SiLU is y = x/(1+e⁻ˣ).
func (isa ISA) SiLU(y, x []float32) { isa.gate(y, x, 1, 0) }

// Swish is y = x/(1+e^(−β·x)).
func (isa ISA) Swish(y, x []float32, beta float32) { isa.gate(y, x, beta, 0) }

// GELU is y = 0.5·x·(1+tanh z) with z = √(2/π)·(x + 0.044715·x³), computed as x/(1+e⁻²ᶻ), which is the same.
func (isa ISA) GELU(y, x []float32) {
	const twice = 1.5957691216057308 // 2·√(2/π)
	isa.gate(y, x, twice, twice*0.044715)
}

// GELUErf is y = 0.5·x·(1+erf(x/√2)), computed as max(x, 0) − 0.5·|x|·erfc(|x|/√2), which is the same; NaN where x is
// infinite.
func (isa ISA) GELUErf(y, x []float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		normalAVX512(at(y), at(x), n)
	default:
		normalWhole(at(y), at(x), n)
	}
	normalTwin(y[n:], x[n:])
}

// gate is y = x/(1+e⁻ᶻ) with z = x·(c1 + c3·x²); NaN where x² is infinite, as it soon would be.
func (isa ISA) gate(y, x []float32, c1, c3 float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		gateAVX512(at(y), at(x), c1, c3, n)
	default:
		gateWhole(at(y), at(x), c1, c3, n)
	}
	gateTwin(y[n:], x[n:], c1, c3)
}

// SoftCap is y = limit·tanh(x/limit); its absolute error is some 2⁻²³·limit.
func (isa ISA) SoftCap(y, x []float32, limit float32) {
	x = x[:len(y)]
	twice := 2 / limit
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		softCapAVX512(at(y), at(x), limit, twice, n)
	default:
		softCapWhole(at(y), at(x), limit, twice, n)
	}
	softCapTwin(y[n:], x[n:], limit, twice)
}

// SoftMax replaces the scores by e^(x−top), where top is their maximum, and adds these up. Scores of −∞ give 0; at
// least one must be finite.
func (isa ISA) SoftMax(x *[Block]float32) (top, sum float32) {
	switch isa {
	case AVX512:
		return softMaxAVX512(x)
	case AVX2, NEON:
		return softMaxWhole(x)
	}
	return softMaxTwin(x)
}

// Exp is y = eˣ.
func (isa ISA) Exp(y, x []float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		expAVX512(at(y), at(x), n)
	default:
		expWhole(at(y), at(x), n)
	}
	expTwin(y[n:], x[n:])
}

// Halve rounds to half precision, to nearest even.
func (isa ISA) Halve(y []uint16, x []float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		halveAVX512(at(y), at(x), n)
	default:
		halveWhole(at(y), at(x), n)
	}
	halveTwin(y[n:], x[n:])
}

// Widen is exact.
func (isa ISA) Widen(y []float32, x []uint16) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		widenAVX512(at(y), at(x), n)
	default:
		widenWhole(at(y), at(x), n)
	}
	widenTwin(y[n:], x[n:])
}

// Bytes keeps x, which must be finite, as y·d: d is 1/s, with s = 127/amax, and y is x·s rounded to nearest even. Both
// are 0 where amax is below tiny.
func (isa ISA) Bytes(y []int8, x []float32, tiny float32) (d float32) {
	y = y[:len(x)]
	amax := isa.Largest(x)
	if amax < tiny {
		clear(y)
		return 0
	}
	s := 127 / amax
	n := isa.whole(len(x))
	switch {
	case n == 0:
	case isa == AVX512:
		roundAVX512(at(y), at(x), s, n)
	default:
		roundWhole(at(y), at(x), s, n)
	}
	roundTwin(y[n:], x[n:], s)
	return 1 / s
}

// WidenBytes is exact.
func (isa ISA) WidenBytes(y []float32, x []int8) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	switch {
	case n == 0:
	case isa == AVX512:
		widenBytesAVX512(at(y), at(x), n)
	default:
		widenBytesWhole(at(y), at(x), n)
	}
	widenBytesTwin(y[n:], x[n:])
}

// MulRows is x[r][j] = x[r][j]·s[j], for all rows of Block elements that x has.
func (isa ISA) MulRows(x []float32, s *[Block]float32) {
	rows := len(x) / Block
	switch {
	case rows == 0:
	case isa == AVX512:
		mulRowsAVX512(at(x), s, rows)
	case isa.rows():
		mulRowsWhole(at(x), s, rows)
	default:
		mulRowsTwin(x, s)
	}
}

// MulAddRows is y[r][j] = y[r][j] + x[r][j]·s[j], rounded twice, for all rows of Block elements that y has.
func (isa ISA) MulAddRows(y, x []float32, s *[Block]float32) {
	x = x[:len(y)]
	rows := len(y) / Block
	switch {
	case rows == 0:
	case isa == AVX512:
		mulAddRowsAVX512(at(y), at(x), s, rows)
	case isa.rows():
		mulAddRowsWhole(at(y), at(x), s, rows)
	default:
		mulAddRowsTwin(y, x, s)
	}
}
