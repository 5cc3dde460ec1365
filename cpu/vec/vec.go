package vec

import "unsafe"

// Block is the number of scores that SoftMax takes: the positions of a KV block.
const Block = 64

// ISA is a set of instructions. Every value gives the same bits; the zero value works everywhere.
type ISA uint8

const (
	Generic ISA = iota // the Go twins
	AVX2               // with FMA and F16C
	AVX512             // F, BW, DQ and VL
)

// whole is the part of n elements that the assembly takes; a twin does the tail.
func (isa ISA) whole(n int) int {
	if isa == Generic {
		return 0
	}
	return n &^ (Lanes - 1)
}

func at[T float32 | uint16](x []T) *T { return unsafe.SliceData(x) }

// Sum adds the elements of x.
func (isa ISA) Sum(x []float32) float32 {
	var l [Lanes]float32
	n := isa.whole(len(x))
	if n > 0 {
		sumAVX2(&l, at(x), n)
	}
	sumTwin(&l, x[n:])
	return tree(&l)
}

// SumSquares adds the squares of the elements of x.
func (isa ISA) SumSquares(x []float32) float32 {
	var l [Lanes]float32
	n := isa.whole(len(x))
	if n > 0 {
		sumSquaresAVX2(&l, at(x), n)
	}
	sumSquaresTwin(&l, x[n:])
	return tree(&l)
}

// Finite says whether x has neither NaN nor an infinity.
func (isa ISA) Finite(x []float32) bool {
	var l [Lanes]float32
	n := isa.whole(len(x))
	if n > 0 {
		finiteAVX2(&l, at(x), n)
	}
	finiteTwin(&l, x[n:])
	return tree(&l) == 0
}

// Add is y = a + b. As in all that follows, y has the length of its inputs and may be one of them.
func (isa ISA) Add(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		addAVX2(at(y), at(a), at(b), n)
	}
	addTwin(y[n:], a[n:], b[n:])
}

// Mul is y = a·b, element by element.
func (isa ISA) Mul(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		mulAVX2(at(y), at(a), at(b), n)
	}
	mulTwin(y[n:], a[n:], b[n:])
}

// Scale is y = s·x.
func (isa ISA) Scale(y, x []float32, s float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		scaleAVX2(at(y), at(x), s, n)
	}
	scaleTwin(y[n:], x[n:], s)
}

// Divide is y = x/s.
func (isa ISA) Divide(y, x []float32, s float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		divideAVX2(at(y), at(x), s, n)
	}
	divideTwin(y[n:], x[n:], s)
}

// Merge is acc = α·acc + β·o.
func (isa ISA) Merge(acc, o []float32, alpha, beta float32) {
	o = o[:len(acc)]
	n := isa.whole(len(acc))
	if n > 0 {
		mergeAVX2(at(acc), at(o), alpha, beta, n)
	}
	mergeTwin(acc[n:], o[n:], alpha, beta)
}

// Rotate turns the points (aᵢ, bᵢ) by the angles of cosᵢ and sinᵢ, in place.
func (isa ISA) Rotate(a, b, cos, sin []float32) {
	b, cos, sin = b[:len(a)], cos[:len(a)], sin[:len(a)]
	n := isa.whole(len(a))
	if n > 0 {
		rotateAVX2(at(a), at(b), at(cos), at(sin), n)
	}
	rotateTwin(a[n:], b[n:], cos[n:], sin[n:])
}

// SiLU is y = x/(1+e⁻ˣ).
func (isa ISA) SiLU(y, x []float32) { isa.gate(y, x, 1, 0) }

// GELU is y = 0.5·x·(1+tanh z) with z = √(2/π)·(x + 0.044715·x³), computed as x/(1+e⁻²ᶻ), which is the same.
func (isa ISA) GELU(y, x []float32) {
	const twice = 1.5957691216057308 // 2·√(2/π)
	isa.gate(y, x, twice, twice*0.044715)
}

// gate is y = x/(1+e⁻ᶻ) with z = x·(c1 + c3·x²); NaN where x² is infinite, as it soon would be.
func (isa ISA) gate(y, x []float32, c1, c3 float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		gateAVX2(at(y), at(x), c1, c3, n)
	}
	gateTwin(y[n:], x[n:], c1, c3)
}

// SoftCap is y = limit·tanh(x/limit); its absolute error is some 2⁻²³·limit.
func (isa ISA) SoftCap(y, x []float32, limit float32) {
	x = x[:len(y)]
	twice := 2 / limit
	n := isa.whole(len(y))
	if n > 0 {
		softCapAVX2(at(y), at(x), limit, twice, n)
	}
	softCapTwin(y[n:], x[n:], limit, twice)
}

// SoftMax replaces the scores by e^(x−top), where top is their maximum, and adds these up. Scores of −∞ give 0; at
// least one must be finite.
func (isa ISA) SoftMax(x *[Block]float32) (top, sum float32) {
	var l [Lanes]float32
	if isa == Generic {
		top = softMaxTwin(&l, x)
	} else {
		top = softMaxAVX2(&l, x)
	}
	return top, tree(&l)
}

// Exp is y = eˣ.
func (isa ISA) Exp(y, x []float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		expAVX2(at(y), at(x), n)
	}
	expTwin(y[n:], x[n:])
}

// Halve rounds to half precision, to nearest even.
func (isa ISA) Halve(y []uint16, x []float32) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		halveAVX2(at(y), at(x), n)
	}
	halveTwin(y[n:], x[n:])
}

// Widen is exact.
func (isa ISA) Widen(y []float32, x []uint16) {
	x = x[:len(y)]
	n := isa.whole(len(y))
	if n > 0 {
		widenAVX2(at(y), at(x), n)
	}
	widenTwin(y[n:], x[n:])
}
