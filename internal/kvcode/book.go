package kvcode

import (
	"math"
	"sync"
)

// Book is a Lloyd-Max codebook of 2^bits levels for one feature of a random unit vector of d features, times √d. Levels
// are its positive half; the negative half mirrors it. Error is the mean squared error of the vector.
type Book struct {
	Levels []float64
	Error  float64
}

// NewBook computes a codebook. A feature is the sine of an angle whose density is cos^(d−2), so that the first moment
// of a cell has a closed form and the other ones are smooth. Borders of cells are midpoints.
func NewBook(d, bits int) Book {
	n, root := 1<<(bits-1), math.Sqrt(float64(max(d, 2)))
	power := float64(max(d, 2) - 2)
	last := math.Min(math.Pi/2, 9/root)
	b := Book{Levels: make([]float64, n)}
	for i := range b.Levels {
		b.Levels[i] = math.Min((float64(i)+0.5)*2.8/float64(n), 0.99*root*float64(i+1)/float64(n))
	}
	borders, mass := make([]float64, n+1), make([]float64, n)
	borders[n] = last
	for range 4000 {
		for i := 1; i < n; i++ {
			borders[i] = math.Asin(math.Min(1, (b.Levels[i-1]+b.Levels[i])/2/root))
		}
		moved := 0.0
		for i := range n {
			parts := 16 // of a cell, but the last, which is wide
			if i == n-1 {
				parts = 160
			}
			mass[i] = simpson(borders[i], borders[i+1], power, parts)
			first := math.Pow(math.Cos(borders[i]), power+1) - math.Pow(math.Cos(borders[i+1]), power+1)
			level := root * first / (power + 1) / mass[i]
			moved = math.Max(moved, math.Abs(level-b.Levels[i]))
			b.Levels[i] += 1.8 * (level - b.Levels[i]) // below 2 it converges, sooner than with 1
		}
		if moved < 1e-10 {
			break
		}
	}
	whole, kept := 0.0, 0.0
	for i, level := range b.Levels {
		whole, kept = whole+mass[i], kept+mass[i]*level*level
	}
	b.Error = 1 - kept/whole // levels are means of their cells
	return b
}

// simpson integrates cos^power.
func simpson(from, to, power float64, parts int) float64 {
	h, sum := (to-from)/float64(parts), 0.0
	for i := range parts + 1 {
		weight := float64(2 + i%2*2)
		if i == 0 || i == parts {
			weight = 1
		}
		sum += weight * math.Pow(math.Cos(from+float64(i)*h), power)
	}
	return sum * h / 3
}

// Most is the largest level, in whole units.
const Most = 64

// whole is a codebook whose levels are whole numbers.
type whole struct {
	levels [16]int8 // all, ascending
	unit   float64  // whole units that are one unit of the Book's levels
	cells  [16]float64
}

// wholes are codebooks by features and bits: they take milliseconds to compute, once.
var wholes sync.Map // [2]int to *whole

// wholeBook is a codebook with whole levels: of those whose largest level is at most Most, the nearest to the exact
// one.
func wholeBook(d, bits int) *whole {
	if found, ok := wholes.Load([2]int{d, bits}); ok {
		return found.(*whole)
	}
	b := NewBook(d, bits)
	n := len(b.Levels)
	best, least := &whole{}, math.Inf(1)
	for largest := float64(Most); largest > 0.85*Most; largest -= 0.05 {
		w := &whole{unit: largest / b.Levels[n-1]}
		apart := 0.0
		for i, x := range b.Levels {
			level := math.Round(x * w.unit)
			w.levels[n+i], w.levels[n-1-i] = int8(level), int8(-level)
			off := level/w.unit - x
			apart += off * off * math.Exp(-x*x/2)
		}
		if apart < least {
			best, least = w, apart
		}
	}
	for i := range 2*n - 1 {
		best.cells[i] = float64(int(best.levels[i])+int(best.levels[i+1])) / 2
	}
	wholes.Store([2]int{d, bits}, best)
	return best
}
