package quant

import "math"

// codebook is the set of whole numbers that codes stand for, in formats whose values are scale·number.
type codebook struct {
	// number and code hold the number nearest to v, and its code, at index 2·v + middle, rounded down. A border between
	// the numbers, half way between two, is a multiple of a half, so each entry has one answer.
	number [2 * middle]float64
	code   [2 * middle]uint8
	// The scales tried for a run map its value of largest magnitude to each of these numbers, within -256…255.
	tries []float64
}

// middle is the index of 0 in the tables.
const middle = 512

// newCodebook takes the numbers of all codes from 0, within -128…127. Of equal ones the first is used.
func newCodebook(tries []float64, numbers ...float64) *codebook {
	c := &codebook{tries: tries}
	for i := range c.number {
		v, nearest := float64(i-middle)/2+0.25, math.Inf(1)
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

// place is the index in the tables for the number nearest to v, given 2·v.
func place(v float64) int {
	v += 256
	if v > 511 {
		v = 511
	}
	if !(v > 0) {
		v = 0
	}
	return (int(v) + middle - 256) & (2*middle - 1)
}

// placeInside is place for numbers within -256…255.
func placeInside(v float64) int { return (int(v+256) + middle - 256) & (2*middle - 1) }

// sums returns Σ w·x·number and Σ w·number² for a run, where each value gets the number nearest to x·inverse.
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

// sums2 is sums for two scales at once, each of which maps all values into -256…255.
func (c *codebook) sums2(r *run, inverse, inverse2 float64) (xl, ll, xl2, ll2 float64) {
	twice, twice2 := 2*inverse, 2*inverse2
	w, wx := r.w[:len(r.x)], r.wx[:len(r.x)]
	for i, v := range r.x {
		l, l2 := c.number[placeInside(float64(v*twice))], c.number[placeInside(float64(v*twice2))]
		xl += float64(wx[i] * l)
		ll += float64(float64(w[i]*l) * l)
		xl2 += float64(wx[i] * l2)
		ll2 += float64(float64(w[i]*l2) * l2)
	}
	return xl, ll, xl2, ll2
}

// fit finds the scale of a run, of either sign.
func (c *codebook) fit(r *run) (scale float64) {
	least, most := r.extremes()
	if -least > most {
		most = least
	}
	if most == 0 {
		return 0
	}
	var b best
	tries := c.tries
	for ; len(tries) > 1; tries = tries[2:] {
		xl, ll, xl2, ll2 := c.sums2(r, tries[0]/most, tries[1]/most)
		b.take(xl, ll)
		b.take(xl2, ll2)
	}
	for _, number := range tries {
		b.take(c.sums(r, number/most))
	}
	return b.improve(c, r)
}

// best is the best scale of a run so far. Each try maps the run's largest value to another number, which leads to
// codes, for which the best scale is solved.
type best struct {
	scale float64
	gain  float64 // by how much the scale lowers the error: (Σ w·x·number)² / Σ w·number²
}

// take keeps the scale that is best for the codes with these sums, if it beats the one so far.
func (b *best) take(xl, ll float64) bool {
	if !(ll > 0 && float64(xl*xl) > float64(b.gain*ll)) {
		return false
	}
	b.gain, b.scale = xl*xl/ll, xl/ll
	return true
}

// improve returns the best scale after turns of finding its codes and solving for their best scale.
func (b *best) improve(c chooser, r *run) (scale float64) {
	for range 2 {
		if b.scale == 0 || !b.take(c.sums(r, 1/b.scale)) {
			break
		}
	}
	return b.scale
}

// error is Σ w·(x - scale·number)² minus the constant Σ w·x².
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
