package quant

import "math"

// affine is a kind of block whose values are scale·code - low. A run of values has a scale and a low, which are whole
// multiples of the block's own two numbers, d and dmin.
type affine struct {
	size   int     // values of a run
	top    float64 // codes go from 0 to top
	most   float64 // multiples of d and dmin go from 0 to most
	signed bool    // low may be negative
}

// affineFit is an encoded block without its codes. d and dmin are numbers that a half can hold.
type affineFit struct {
	d, dmin    float64
	scale, low [16]float64
	err        float64
}

// moments are weighted sums over a run, of values x and codes l.
type moments struct{ w, x, xx, l, ll, xl float64 }

func (r *run) moments() (m moments) {
	for i, v := range r.x {
		m.w += r.w[i]
		m.x += r.wx[i]
		m.xx += float64(r.wx[i] * v)
	}
	return m
}

// code sums over the codes nearest to (x + low)·inverse, one for each value.
func (m *moments) code(r *run, top, inverse, low float64) {
	w, wx := r.w[:len(r.x)], r.wx[:len(r.x)]
	var sl, sll, sxl float64
	for i, v := range r.x {
		l := float64((v + low) * inverse)
		if l > top { // before it is rounded: it may be large
			l = top
		}
		if !(l > 0) {
			l = 0
		}
		l = l + whole - whole
		wl := float64(w[i] * l)
		sl += wl
		sll += float64(wl * l)
		sxl += float64(wx[i] * l)
	}
	m.l, m.ll, m.xl = sl, sll, sxl
}

// error is Σ w·(x - (scale·l - low))².
func (m *moments) error(scale, low float64) float64 {
	squares := m.xx + float64(scale*scale*m.ll) + float64(low*low*m.w)
	return squares + 2*(float64(low*m.x)-float64(scale*m.xl)-float64(scale*low*m.l))
}

// solve finds the scale and low that are best for the codes.
func (m *moments) solve(signed bool) (scale, low float64, ok bool) {
	if m.ll == 0 {
		return 0, 0, false
	}
	det := float64(m.w*m.ll) - float64(m.l*m.l)
	low = (float64(m.l*m.xl) - float64(m.ll*m.x)) / det
	if det < 1e-9*m.w*m.ll || low < 0 && !signed { // one code only, or a bound that is met
		scale, low = m.xl/m.ll, 0
	} else {
		scale = (float64(m.w*m.xl) - float64(m.x*m.l)) / det
	}
	return scale, low, scale > 0
}

// fit finds scale and low of a run. It tries some scales near the full range: each leads to codes, for which the best
// scale and low are solved. The best result is improved by turns of coding and solving.
func (a *affine) fit(r *run, m moments) (scale, low float64) {
	least, most := r.extremes()
	if !a.signed {
		least = min(least, 0)
	}
	if most <= least {
		return 0, -least
	}
	const tries, spread = 6, 1.5 // more leave some thousandths less error
	best := math.Inf(1)
	scale, low = (most-least)/a.top, -least
	for try := -tries; try <= tries; try++ {
		m.code(r, a.top, (a.top+float64(float64(try)*(spread/tries)))/(most-least), -least)
		if s, l, ok := m.solve(a.signed); ok {
			if e := m.error(s, l); e < best {
				best, scale, low = e, s, l
			}
		}
	}
	for range 2 {
		m.code(r, a.top, inverse(scale), low)
		s, l, ok := m.solve(a.signed)
		if !ok || m.error(s, l) >= best {
			break
		}
		best, scale, low = m.error(s, l), s, l
	}
	return scale, low
}

// inverse is 1/x, or 0 for an x of 0, where all codes are equally good.
func inverse(x float64) float64 {
	if x == 0 {
		return 0
	}
	return 1 / x
}

// encode finds the numbers of a block and its codes: first for each run on its own, then as multiples of d and dmin.
func (a *affine) encode(b *target) affineFit {
	var f affineFit
	var scales, lows [16]float64
	runs := b.cut(a.size)
	for i := range runs {
		scales[i], lows[i] = a.fit(&runs[i], runs[i].moments())
		f.d, f.dmin = max(f.d, scales[i]/a.most), max(f.dmin, lows[i]/a.most)
	}
	f.d, f.dmin = unitHalf(f.d), unitHalf(f.dmin)
	for i := range runs {
		f.scale[i] = level(scales[i]*inverse(f.d), a.most)
		f.low[i] = level(lows[i]*inverse(f.dmin), a.most)
	}
	d, dmin := a.refine(runs, &f)
	again := f
	again.d, again.dmin = d, dmin
	a.refine(runs, &again)
	if again.err < f.err {
		f = again
	}
	a.code(runs, &f)
	return f
}

// refine tries the neighbours of each run's scale and low, and returns the d and dmin that suit them best.
func (a *affine) refine(runs []run, f *affineFit) (d, dmin float64) {
	var aa, ab, bb, xa, xb float64 // normal equations of x ≈ d·(scale·l) - dmin·low
	f.err = 0
	for i := range runs {
		m, err := a.refineRun(&runs[i], f, i)
		s, l := f.scale[i], f.low[i]
		f.err += err
		aa += float64(s * s * m.ll)
		ab += float64(s * l * m.l)
		bb += float64(l * l * m.w)
		xa += float64(s * m.xl)
		xb += float64(l * m.x)
	}
	d, dmin = f.d, f.dmin
	if det := float64(aa*bb) - float64(ab*ab); det > 1e-9*aa*bb {
		d, dmin = (float64(xa*bb)-float64(xb*ab))/det, (float64(xa*ab)-float64(xb*aa))/det
	} else if aa > 0 && bb == 0 {
		d = xa / aa
	}
	if !(d > 0 && dmin >= 0) {
		return f.d, f.dmin
	}
	return asHalf(d), asHalf(dmin)
}

// refineRun chooses the best scale and low of run i and returns its sums under them.
func (a *affine) refineRun(r *run, f *affineFit, i int) (best moments, err float64) {
	err = math.Inf(1)
	m := r.moments()
	scale, low := f.scale[i], f.low[i]
	for s := max(0, scale-1); s <= min(a.most, scale+1); s++ {
		y, l := f.d*s, low
		for range 2 { // under the given low, and under the one that suits the codes
			m.code(r, a.top, inverse(y), f.dmin*l)
			if e := m.error(y, f.dmin*l); e < err {
				best, err = m, e
				f.scale[i], f.low[i] = s, l
			}
			next := level((float64(y*m.l)-m.x)/m.w*inverse(f.dmin), a.most)
			if next == l {
				break
			}
			l = next
		}
	}
	return best, err
}

// code gives each value the nearest code, under the numbers as the decoder reads them, in float32.
func (a *affine) code(runs []run, f *affineFit) {
	for i, r := range runs {
		inverse := inverse(float64(float32(f.d) * float32(f.scale[i])))
		low := float64(float32(f.dmin) * float32(f.low[i]))
		for j, v := range r.x {
			r.code[j] = uint8(level((v+low)*inverse, a.top))
		}
	}
}
