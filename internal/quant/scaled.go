package quant

import "math"

// chooser finds the codes of a run whose values are scale·number.
type chooser interface {
	fit(r *run) (scale float64)                    // the best scale; 0 if all values are 0
	sums(r *run, inverse float64) (xl, ll float64) // for the best numbers at a scale: Σ w·x·number, Σ w·number²
	encode(r *run, scale float64)                  // writes the codes of the run
}

// scaled is a kind of block whose values are d·scale·number/fraction, where each run has a whole number as scale.
type scaled struct {
	chooser
	size            int     // values of a run
	low, high, step float64 // the scales: low, low + step … high
	fraction        float64 // a power of two
}

// scaledFit is an encoded block without its codes. d is stored: a number that a half can hold.
type scaledFit struct {
	d     float64
	scale [16]float64
	err   float64 // minus Σ w·x²
}

// encode finds the numbers of a block and its codes: first for each run on its own, then as multiples of d.
func (k *scaled) encode(b *target) scaledFit {
	var f scaledFit
	var scales [16]float64
	var most float64
	runs := b.cut(k.size)
	for i := range runs {
		scales[i] = k.fit(&runs[i])
		if math.Abs(scales[i]) > math.Abs(most) {
			most = scales[i]
		}
	}
	last := k.high
	if k.low < 0 { // of which there is one more, and d takes the sign
		last = k.low
	}
	f.d = unitHalf(most * k.fraction / last)
	for i := range runs {
		steps := math.RoundToEven((float64(scales[i]*inverse(f.d/k.fraction)) - k.low) / k.step)
		f.scale[i] = max(k.low, min(k.high, k.low+float64(k.step*steps)))
	}
	again := f
	again.d = k.refine(runs, &f)
	again.scale = f.scale
	k.refine(runs, &again)
	if again.err < f.err {
		f = again
	}
	for i := range runs {
		k.chooser.encode(&runs[i], float64(float32(f.d/k.fraction)*float32(f.scale[i]))) // as the decoder sees it
	}
	return f
}

// refine tries the neighbours of each run's scale, and returns the d that suits them best.
func (k *scaled) refine(runs []run, f *scaledFit) (d float64) {
	var xl, ll float64
	f.err = 0
	for i := range runs {
		scale, err := f.scale[i], math.Inf(1)
		var bestXL, bestLL float64
		for s := max(k.low, scale-k.step); s <= min(k.high, scale+k.step); s += k.step {
			y := f.d / k.fraction * s
			rxl, rll := k.sums(&runs[i], inverse(y))
			if e := float64(float64(y*y)*rll) - 2*float64(y*rxl); e < err {
				err, bestXL, bestLL = e, float64(s*rxl), float64(s*s*rll)
				f.scale[i] = s
			}
		}
		f.err += err
		xl += bestXL
		ll += bestLL
	}
	if ll == 0 {
		return f.d
	}
	return asHalf(xl / ll * k.fraction)
}
