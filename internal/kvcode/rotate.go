package kvcode

import (
	"math"
	"sync"
)

// Rotation is an orthogonal matrix R = H·D/√d for rows of d features: D flips fixed signs first, H is a Hadamard
// matrix. Where d is 3 or 5 times a multiple of 4, H is a Kronecker product with Paley's matrix of size 12 or 20; for
// other d that are no power of two, with a cosine transform.
type Rotation struct {
	Signs  []float32 // D
	Power  int       // size of a butterfly: a row is a matrix of so many columns, and Across multiplies those
	Scale  float32   // 1/√d
	outer  int       // rows of this matrix
	factor []float32 // if outer is not 1
}

// rotations holds the rotations in use, by number of features.
var rotations sync.Map // int to *Rotation

// RotationOf returns the rotation of rows of so many features.
func RotationOf(d int) *Rotation {
	if found, ok := rotations.Load(d); ok {
		return found.(*Rotation)
	}
	r := &Rotation{Signs: make([]float32, d), Scale: float32(1 / math.Sqrt(float64(d)))}
	r.outer, r.Power = factors(d)
	if r.outer > 1 {
		r.factor = factorOf(r.outer)
	}
	for i := range r.Signs {
		if r.Signs[i] = 1; flips(i) {
			r.Signs[i] = -1
		}
	}
	rotations.Store(d, r)
	return r
}

// Rotate multiplies a row by R: Signs, Butterflies of each Power features, Across, Scale.
func (r *Rotation) Rotate(row []float32) {
	multiply(row, r.Signs)
	r.transform(row, false)
}

// Unrotate multiplies by the inverse, which is the transpose.
func (r *Rotation) Unrotate(row []float32) {
	r.transform(row, true)
	multiply(row, r.Signs)
}

func multiply(row, by []float32) {
	for i, x := range by {
		row[i] *= x
	}
}

// transform multiplies by H/√d, or by its transpose.
func (r *Rotation) transform(row []float32, back bool) {
	for from := 0; from < len(row); from += r.Power {
		Butterflies(row[from : from+r.Power])
	}
	r.Across(row, back)
	for i := range row {
		row[i] *= r.Scale
	}
}

// Rotate multiplies a row by the rotation of its size.
func Rotate(row []float32) { RotationOf(len(row)).Rotate(row) }

// Unrotate undoes Rotate.
func Unrotate(row []float32) { RotationOf(len(row)).Unrotate(row) }

// Butterflies multiplies a row, whose size is a power of two, by Sylvester's Hadamard matrix.
func Butterflies(x []float32) {
	for half := 1; half < len(x); half *= 2 {
		for i := 0; i < len(x); i += 2 * half {
			a, b := x[i:i+half], x[i+half:i+2*half]
			for j, y := range a {
				a[j], b[j] = y+b[j], y-b[j]
			}
		}
	}
}

// flips says whether D flips the sign of feature i: a hash of i.
func flips(i int) bool {
	x := uint64(i+1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x>>63 != 0
}

// factors returns d as outer times a power of two, where outer is the size of a Paley matrix, or odd.
func factors(d int) (outer, power int) {
	for power = 1; d%2 == 0 && d > 0; d /= 2 {
		power *= 2
	}
	if (d == 3 || d == 5) && power >= 4 {
		return 4 * d, power / 4
	}
	return d, power
}

// Across multiplies the columns by the outer factor, if there is one, or by its transpose.
func (r *Rotation) Across(row []float32, back bool) {
	if r.outer == 1 {
		return
	}
	outer, power, factor := r.outer, r.Power, r.factor
	var memory [64]float32
	column := memory[:]
	if outer > len(memory) {
		column = make([]float32, outer)
	}
	column = column[:outer]
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

// factorOf is the outer factor of a size, in rows.
func factorOf(outer int) []float32 {
	factor := make([]float32, outer*outer)
	for i := range factor {
		factor[i] = entry(outer, i/outer, i%outer)
	}
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
