package quant

import "math"

// codebook is the set of whole numbers that codes stand for where a value is scale·number.
type codebook struct {
	// The number nearest to v, and its code, at 2·v + 256 rounded down. Half way between two whole numbers lies a
	// multiple of a half, so that each entry has one answer.
	number [512]float64
	code   [512]uint8
	// The scales tried in a run map its value of largest magnitude to each of these.
	tries []float64
}

// newCodebook takes the numbers of all codes from 0, within -128…127. Of equal ones the first is used.
func newCodebook(tries []float64, numbers ...float64) *codebook {
	c := &codebook{tries: tries}
	for i := range c.number {
		v, nearest := float64(i-256)/2+0.25, math.Inf(1)
		for code, number := range numbers {
			if away := math.Abs(number - v); away < nearest {
				nearest, c.number[i], c.code[i] = away, number, uint8(code)
			}
		}
	}
	return c
}

// steps are the numbers first, first+step … last.
func steps(first, last, step float64) (numbers []float64) {
	for n := first; n < last+step/2; n += step {
		numbers = append(numbers, n)
	}
	return numbers
}

// place is where the number nearest to v stands in the tables, given twice v.
func place(v float64) int {
	v += 256
	if v > 511 {
		v = 511
	}
	if !(v > 0) {
		v = 0
	}
	return int(v) & 511
}

// sums gives each value of a run the number nearest to x·inverse: Σ w·x·number and Σ w·number².
func (c *codebook) sums(r *run, inverse float64) (xl, ll float64) {
	twice := 2 * inverse
	w, wx := r.w[:len(r.x)], r.wx[:len(r.x)]
	for i, v := range r.x {
		l := c.number[place(float64(v*twice))]
		xl += float64(wx[i] * l)
		ll += float64(float64(w[i]*l) * l)
	}
	return xl, ll
}

// fit finds the scale of a run, of either sign.
func (c *codebook) fit(r *run) (scale float64) {
	least, most := r.extremes()
	if -least > most {
		most = least
	}
	return fit(c, r, c.tries, most)
}

// fit finds the scale of a run: what the tries lead to, which map most to one number after the other, is solved for
// the best scale, and the best of these is improved by turns.
func fit(c chooser, r *run, tries []float64, most float64) (scale float64) {
	if most == 0 {
		return 0
	}
	var gain float64 // what the scale takes off the error: (Σ w·x·number)² / Σ w·number²
	better := func(inverse float64) bool {
		xl, ll := c.sums(r, inverse)
		if !(ll > 0 && float64(xl*xl) > float64(gain*ll)) {
			return false
		}
		gain, scale = xl*xl/ll, xl/ll
		return true
	}
	for _, number := range tries {
		better(number / most)
	}
	for range 2 {
		if scale == 0 || !better(1/scale) {
			break
		}
	}
	return scale
}

// error is Σ w·(x - scale·number)², less Σ w·x².
func (c *codebook) error(r *run, scale float64) float64 {
	xl, ll := c.sums(r, inverse(scale))
	return float64(float64(scale*scale)*ll) - float64(2*scale*xl)
}

// encode gives each value the code nearest to it.
func (c *codebook) encode(r *run, scale float64) {
	twice := 2 * inverse(scale)
	for j, v := range r.x {
		r.code[j] = c.code[place(float64(v*twice))]
	}
}
