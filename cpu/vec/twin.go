package vec

import (
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Lanes is the number of partial sums of a reduction: element i belongs to sum i mod Lanes.
const Lanes = 16

// FMA is x·y+z rounded once to float32, as VFMADD231PS computes it.
//
// The product of two float32 is exact in float64. The sum is rounded to odd there (if inexact, its last bit is
// set), which makes the second rounding to float32 right: Boldo and Melquiond, Emulation of a FMA (2008).
func FMA(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	// Knuth's TwoSum: s + e = p + c exactly.
	v := s - p
	e := (p - (s - v)) + (c - v)
	if e != 0 && e == e && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// The range in which exp is computed: below it is 0, above it stays at e⁸⁸, near the largest float32.
const (
	expLow  = -87
	expHigh = 88
)

// exp is eˣ with a relative error below 2⁻²³: x = n·ln 2 + r, and e^r = 1 + r + r²·q(r) with q interpolated at the
// Chebyshev points of |r| ≤ 0.347 (relative error 1e-8). NaN stays NaN.
func exp(x float32) float32 {
	if x < expLow {
		return 0
	}
	if x > expHigh {
		x = expHigh
	}
	// Adding 1.5·2²³ rounds to an integer, which is then found in the low bits.
	const magic = 0x1.8p23
	t := FMA(x, 0x1.715476p+0, magic)
	n := t - magic
	r := FMA(n, -0x1.62e4p-1, x)   // ln 2, the 15 upper bits: the product is exact
	r = FMA(n, -0x1.7f7d1cp-20, r) // ln 2, the rest
	q := FMA(math.Float32frombits(0x3ab688bb), r, math.Float32frombits(0x3c0905ed))
	q = FMA(q, r, math.Float32frombits(0x3d2aaa8c))
	q = FMA(q, r, math.Float32frombits(0x3e2aaa6e))
	q = FMA(q, r, 0.5)
	q = FMA(q, r, 1)
	q = FMA(q, r, 1)
	return q * math.Float32frombits(math.Float32bits(t)<<23+0x3f800000)
}

// tail is erfc(m/√2)·m for m ≥ 0. erfc has a relative error of 1.2e-7: Press et al., Numerical Recipes in C (2nd
// edition), §6.2, erfcc; e^x adds m²·2⁻²⁴ to it, where erfc is as small as e^(−m²/2).
func tail(m float32) float32 {
	t := 1 / FMA(m, 0x1.6a09e6p-2, 1) // 1/(1+m/(2·√2))
	p := float32(0.17087277)
	for _, c := range [...]float32{-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418,
		0.37409196, 1.00002368, -1.26551223} {
		p = FMA(p, t, c)
	}
	return exp(FMA(float32(m*m), -0.5, p)) * float32(t*m)
}

// tree adds the lanes, the upper half to the lower one until one is left.
func tree(l *[Lanes]float32) float32 {
	for i := range 8 {
		l[i] += l[i+8]
	}
	for i := range 4 {
		l[i] += l[i+4]
	}
	return (l[0] + l[2]) + (l[1] + l[3])
}

func sumTwin(l *[Lanes]float32, x []float32) {
	for i, v := range x {
		l[i%Lanes] += v
	}
}

func sumSquaresTwin(l *[Lanes]float32, x []float32) {
	for i, v := range x {
		l[i%Lanes] += float32(v * v)
	}
}

func addTwin(y, a, b []float32) {
	for i := range y {
		y[i] = a[i] + b[i]
	}
}

func mulTwin(y, a, b []float32) {
	for i := range y {
		y[i] = a[i] * b[i]
	}
}

func scaleTwin(y, x []float32, s float32) {
	for i := range y {
		y[i] = x[i] * s
	}
}

func divideTwin(y, x []float32, s float32) {
	for i := range y {
		y[i] = x[i] / s
	}
}

func mergeTwin(acc, o []float32, alpha, beta float32) {
	for i := range acc {
		acc[i] = float32(acc[i]*alpha) + float32(o[i]*beta)
	}
}

func rotateTwin(a, b, cos, sin []float32) {
	for i := range a {
		x, y := a[i], b[i]
		a[i] = float32(x*cos[i]) - float32(y*sin[i])
		b[i] = float32(x*sin[i]) + float32(y*cos[i])
	}
}

func rotatePairsTwin(x, cos, sin []float32) {
	for i := range len(x) / 2 {
		p, q := x[2*i], x[2*i+1]
		x[2*i] = float32(p*cos[i]) - float32(q*sin[i])
		x[2*i+1] = float32(p*sin[i]) + float32(q*cos[i])
	}
}

func expTwin(y, x []float32) {
	for i, v := range x {
		y[i] = exp(v)
	}
}

func gateTwin(y, x []float32, c1, c3 float32) {
	for i, v := range x {
		z := float32(v * (float32(float32(v*v)*c3) + c1))
		y[i] = v / (1 + exp(-z))
	}
}

func normalTwin(y, x []float32) {
	for i, v := range x {
		y[i] = FMA(tail(max(v, -v)), -0.5, max(v, 0))
	}
}

func softCapTwin(y, x []float32, limit, twice float32) {
	for i, v := range x {
		y[i] = float32(limit * (1 - 2/(1+exp(float32(v*twice)))))
	}
}

// softMaxTwin: the maximum, then e^(x−max) in place, then their sum.
func softMaxTwin(x *[Block]float32) (top, sum float32) {
	var l [Lanes]float32
	top = x[0]
	for _, v := range x[1:] {
		top = max(top, v)
	}
	for i, v := range x {
		x[i] = exp(v - top)
		l[i%Lanes] += x[i]
	}
	return top, tree(&l)
}

func halveTwin(y []uint16, x []float32) {
	for i, v := range x {
		y[i] = quant.F32ToF16(v)
	}
}

func widenTwin(y []float32, x []uint16) {
	for i, v := range x {
		y[i] = quant.F16ToF32(v)
	}
}

func largestTwin(x []float32) (most float32) {
	for _, v := range x {
		most = max(most, v, -v)
	}
	return most
}

// roundTwin multiplies by s and rounds; products must fit int8.
func roundTwin(y []int8, x []float32, s float32) {
	for i, v := range x {
		y[i] = int8(math.RoundToEven(float64(v * s)))
	}
}

func widenBytesTwin(y []float32, x []int8) {
	for i, v := range x {
		y[i] = float32(v)
	}
}

func mulRowsTwin(x []float32, s *[Block]float32) {
	for i := range x {
		x[i] *= s[i%Block]
	}
}

func mulAddRowsTwin(y, x []float32, s *[Block]float32) {
	for i := range y {
		y[i] += float32(x[i] * s[i%Block])
	}
}

// recurTwin: see ISA.Recur.
func recurTwin(p *Recurrence) {
	for j := range p.N {
		var y float32
		for i, k := range p.K {
			s := &p.S[i*p.Stride+j]
			*s = FMA(k, p.W[j], *s*p.Decay)
			y = FMA(*s, p.Q[i], y)
		}
		p.Y[j] = y
	}
}

// panelTwin: see ISA.Panel.
func panelTwin(p *Product, at func(i int) float32) {
	for r := range p.Rows {
		for j := range p.N {
			var acc float32
			for k := range p.K {
				acc = FMA(p.A[r*p.AStride+k], at(k*p.BStride+j), acc)
			}
			p.C[r*p.CStride+j] = acc + 0
		}
	}
}
