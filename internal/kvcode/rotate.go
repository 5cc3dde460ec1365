package kvcode

import (
	"math"
	"sync"
)

// Rotate multiplies a row by an orthogonal matrix R = H·D/√d: D flips fixed signs first, H is a Hadamard matrix. Where
// the number of features d is 3 or 5 times a multiple of 4, H is a Kronecker product with Paley's matrix of 12 or 20;
// for others that are no power of two, with a cosine transform.
func Rotate(row []float32) {
	for i := range row {
		if flips(i) {
			row[i] = -row[i]
		}
	}
	transform(row, false)
}

// Unrotate multiplies by the inverse, which is the transpose.
func Unrotate(row []float32) {
	transform(row, true)
	for i := range row {
		if flips(i) {
			row[i] = -row[i]
		}
	}
}

// flips is the diagonal of D: a hash of the feature's number.
func flips(i int) bool {
	x := uint64(i+1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x>>63 != 0
}

// factors are d as outer times a power of two. Outer is that of a Paley matrix or odd.
func factors(d int) (outer, power int) {
	for power = 1; d%2 == 0 && d > 0; d /= 2 {
		power *= 2
	}
	if (d == 3 || d == 5) && power >= 4 {
		return 4 * d, power / 4
	}
	return d, power
}

// transform multiplies by H/√d, or by its transpose. A row is an outer × power matrix: butterflies within its rows,
// the outer factor across them.
func transform(row []float32, back bool) {
	outer, power := factors(len(row))
	for from := 0; from < len(row); from += power {
		part := row[from : from+power]
		for half := 1; half < power; half *= 2 {
			for i := 0; i < power; i += 2 * half {
				a, b := part[i:i+half], part[i+half:i+2*half]
				for j, x := range a {
					a[j], b[j] = x+b[j], x-b[j]
				}
			}
		}
	}
	scale := float32(1 / math.Sqrt(float64(power)))
	if outer > 1 {
		scale = float32(1 / math.Sqrt(float64(len(row))))
		across(row, outer, power, back)
	}
	for i := range row {
		row[i] *= scale
	}
}

// across multiplies the columns of an outer × power matrix by the outer factor.
func across(row []float32, outer, power int, back bool) {
	var memory [64]float32
	column := memory[:]
	if outer > len(memory) {
		column = make([]float32, outer)
	}
	column = column[:outer]
	factor := factorOf(outer)
	for j := range power {
		for i := range column {
			column[i] = row[i*power+j]
		}
		for i := range outer {
			from, step := i*outer, 1
			if back {
				from, step = i, outer
			}
			sum := float32(0)
			for k, x := range column {
				sum += float32(x * factor[from+k*step])
			}
			row[i*power+j] = sum
		}
	}
}

// outers are the outer factors in use, by size, in rows.
var outers sync.Map // int to []float32

func factorOf(outer int) []float32 {
	if found, ok := outers.Load(outer); ok {
		return found.([]float32)
	}
	factor := make([]float32, outer*outer)
	for i := range factor {
		factor[i] = entry(outer, i/outer, i%outer)
	}
	outers.Store(outer, factor)
	return factor
}

// entry is an element of the outer factor, whose rows have length √outer.
func entry(outer, i, j int) float32 {
	if outer == 12 || outer == 20 {
		return paley(outer-1, i, j)
	}
	if i == 0 {
		return 1
	}
	return float32(math.Sqrt2 * math.Cos(math.Pi*(float64(j)+0.5)*float64(i)/float64(outer)))
}

// paley is an element of the Hadamard matrix of size q+1, for a prime q that is 3 modulo 4: I + S, S skew, of a border
// of ones and Legendre's symbols.
func paley(q, i, j int) float32 {
	switch {
	case i == j || i == 0:
		return 1
	case j == 0:
		return -1
	}
	a := ((i-j)%q + q) % q
	for x := 1; x <= q/2; x++ {
		if x*x%q == a {
			return 1
		}
	}
	return -1
}
